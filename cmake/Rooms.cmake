# tidemark_room(NAME DEPENDS … PRIVATE_DEPENDS …): the room src/NAME as library tidemark_NAME, with
#   x_test.cc    → NAME_test    needs no server, clock or sleep
#   x_pgtest.cc  → NAME_pgtest  gets a throwaway PostgreSQL cluster (tests/cluster.h)
#   x_fuzz.cc    → x_fuzz       a libFuzzer target, only with TIDEMARK_FUZZ
# A room with no source file yet is skipped.
include(GoogleTest)

# Read by nearly every file, and half of what compiling one takes: they are compiled once for all
# rooms, and once for all tests. A file still includes what it uses.
set(TIDEMARK_COMMON_HEADERS <algorithm> <chrono> <functional> <map> <memory> <optional> <set>
    <string> <string_view> <thread> <utility> <variant> <vector> <fmt/format.h>)

function(tidemark_common_headers target)
  if(target STREQUAL "tidemark_base")
    target_precompile_headers(${target} PRIVATE ${TIDEMARK_COMMON_HEADERS})
  else()
    target_precompile_headers(${target} REUSE_FROM tidemark_base)
  endif()
endfunction()

function(tidemark_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  set(pgtests ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER pgtests INCLUDE REGEX "_pgtest\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|pgtest|fuzz)\\.cc$")
  if(NOT sources)
    add_library(tidemark_${name} INTERFACE)
    target_link_libraries(tidemark_${name} INTERFACE ${ROOM_DEPENDS})
    return()
  endif()

  file(GLOB schema CONFIGURE_DEPENDS ${dir}/schema/*.sql)
  if(schema)
    tidemark_embed_sql(${name} generated ${schema})
    list(APPEND sources ${generated})
  endif()

  add_library(tidemark_${name} STATIC ${sources})
  target_include_directories(tidemark_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(tidemark_${name} PUBLIC ${ROOM_DEPENDS} PRIVATE ${ROOM_PRIVATE_DEPENDS})
  tidemark_common_headers(tidemark_${name})

  if(TIDEMARK_TESTS)
    tidemark_test(${name} ${name}_test "${tests}" 60)
    tidemark_test(${name} ${name}_pgtest "${pgtests}" 900 WHOLE)
  endif()
  if(TIDEMARK_FUZZ)
    foreach(fuzzer ${fuzzers})
      get_filename_component(target ${fuzzer} NAME_WE)
      add_executable(${target} ${fuzzer})
      target_link_libraries(${target} PRIVATE tidemark_${name} ${ROOM_PRIVATE_DEPENDS}
                            -fsanitize=fuzzer)
    endforeach()
  endif()
endfunction()

# WHOLE: one run of the program is one test, for programs whose tests share a server that takes longer
# to start than they do.
function(tidemark_test room target sources timeout)
  if(NOT sources)
    return()
  endif()
  if(NOT TARGET tidemark_test_headers)
    file(WRITE ${CMAKE_BINARY_DIR}/generated/test_headers.cc "")
    add_library(tidemark_test_headers OBJECT ${CMAKE_BINARY_DIR}/generated/test_headers.cc)
    target_link_libraries(tidemark_test_headers PRIVATE tidemark_base GTest::gtest GTest::gmock)
    target_precompile_headers(tidemark_test_headers PRIVATE ${TIDEMARK_COMMON_HEADERS}
                              <gtest/gtest.h> <gmock/gmock.h>)
  endif()
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE tidemark_${room} ${ROOM_PRIVATE_DEPENDS} GTest::gtest
                        GTest::gmock GTest::gtest_main)
  target_precompile_headers(${target} REUSE_FROM tidemark_test_headers)
  if(target MATCHES "_pgtest$")
    target_link_libraries(${target} PRIVATE tidemark_cluster)
  endif()
  target_compile_definitions(${target} PRIVATE TIDEMARK_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                             TIDEMARK_BINARY="${CMAKE_BINARY_DIR}/tidemark")
  if("WHOLE" IN_LIST ARGN)
    add_test(NAME ${target} COMMAND ${target})
    set_tests_properties(${target} PROPERTIES TIMEOUT ${timeout} LABELS ${room})
  else()
    gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT ${timeout}
                         LABELS ${room})
  endif()
endfunction()

# Numbered SQL files as one C++ table: tidemark::<room>::kSchemaFiles in "<room>/schema_files.h".
function(tidemark_embed_sql room out)
  set(file ${CMAKE_BINARY_DIR}/generated/${room}_schema_files.cc)
  add_custom_command(
    OUTPUT ${file}
    COMMAND ${CMAKE_COMMAND} -DROOM=${room} -DOUT=${file} "-DFILES=${ARGN}"
            -P ${CMAKE_SOURCE_DIR}/cmake/EmbedSql.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/EmbedSql.cmake
    VERBATIM)
  set(${out} ${file} PARENT_SCOPE)
endfunction()
