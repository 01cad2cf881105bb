-- For those who look after a mirror: how near the source's disk is to its end.

-- What is free where the source keeps its write-ahead log; NULL: not known, as of a source elsewhere.
ALTER TABLE tidemark.progress ADD log_free_bytes bigint;
