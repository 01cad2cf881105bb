# Every third-party library, found once. Each is linked by the one room that is its door.
find_package(spdlog REQUIRED)
find_path(LIBPQ_INCLUDE_DIR libpq-fe.h PATH_SUFFIXES postgresql REQUIRED)
find_library(LIBPQ_LIBRARY pq REQUIRED)
add_library(PostgreSQL::libpq UNKNOWN IMPORTED)
set_target_properties(PostgreSQL::libpq PROPERTIES IMPORTED_LOCATION ${LIBPQ_LIBRARY}
                      INTERFACE_INCLUDE_DIRECTORIES ${LIBPQ_INCLUDE_DIR})

find_path(PG_QUERY_INCLUDE_DIR pg_query.h REQUIRED)
find_library(PG_QUERY_LIBRARY NAMES pg_query REQUIRED)
add_library(pg_query UNKNOWN IMPORTED)
set_target_properties(pg_query PROPERTIES IMPORTED_LOCATION ${PG_QUERY_LIBRARY}
                      INTERFACE_INCLUDE_DIRECTORIES ${PG_QUERY_INCLUDE_DIR})

find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
add_library(xxhash INTERFACE IMPORTED)
target_include_directories(xxhash INTERFACE ${XXHASH_INCLUDE_DIR})

find_package(Boost 1.74 REQUIRED)
if(NOT TARGET Boost::headers)
  add_library(Boost::headers ALIAS Boost::boost)
endif()
find_package(OpenSSL REQUIRED)
find_package(CLI11 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
if(TIDEMARK_TESTS)
  find_package(GTest REQUIRED)
endif()
include(ArrowFromWheel)
include(AdbcDriverManager)
