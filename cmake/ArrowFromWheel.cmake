# Arrow C++: a system install when there is one, else the headers and libraries inside the pinned
# pyarrow wheel that tools/setup puts into build/arrow.
find_package(Arrow QUIET CONFIG)
if(TARGET Arrow::arrow_shared)
  add_library(Arrow::arrow ALIAS Arrow::arrow_shared)
  find_package(Parquet REQUIRED CONFIG)
  add_library(Arrow::parquet ALIAS Parquet::parquet_shared)
  return()
endif()
file(GLOB wheel ${CMAKE_SOURCE_DIR}/build/arrow/lib/python3*/site-packages/pyarrow)
if(NOT wheel)
  message(FATAL_ERROR "Arrow C++ not found: run tools/setup, or install libarrow-dev")
endif()
list(GET wheel 0 wheel)
file(GLOB library ${wheel}/libarrow.so.*)
list(GET library 0 library)
add_library(Arrow::arrow SHARED IMPORTED)
set_target_properties(Arrow::arrow PROPERTIES IMPORTED_LOCATION ${library}
                      INTERFACE_INCLUDE_DIRECTORIES ${wheel}/include
                      INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${wheel}/include)
file(GLOB library ${wheel}/libparquet.so.*)
list(GET library 0 library)
add_library(Arrow::parquet SHARED IMPORTED)
set_target_properties(Arrow::parquet PROPERTIES IMPORTED_LOCATION ${library}
                      INTERFACE_LINK_LIBRARIES Arrow::arrow)
