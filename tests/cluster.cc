int tidemark_cluster_placeholder = 0;
