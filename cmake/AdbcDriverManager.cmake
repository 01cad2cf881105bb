# The ADBC driver manager: a system install when there is one, else the sources that the pinned wheel
# in build/adbc brings (tools/setup). TIDEMARK_ADBC_DRIVERS is the folder with the wheels' drivers,
# for the tests.
file(GLOB TIDEMARK_ADBC_DRIVERS ${CMAKE_SOURCE_DIR}/build/adbc/lib/python3*/site-packages)
find_package(AdbcDriverManager QUIET CONFIG)
if(TARGET AdbcDriverManager::adbc_driver_manager_shared)
  add_library(adbc_driver_manager ALIAS AdbcDriverManager::adbc_driver_manager_shared)
  return()
endif()
if(NOT TIDEMARK_ADBC_DRIVERS)
  message(FATAL_ERROR "ADBC driver manager not found: run tools/setup")
endif()
list(GET TIDEMARK_ADBC_DRIVERS 0 TIDEMARK_ADBC_DRIVERS)
set(manager ${TIDEMARK_ADBC_DRIVERS}/adbc_driver_manager)
file(GLOB manager_sources ${manager}/adbc_driver_manager*.cc)
add_library(adbc_driver_manager STATIC ${manager_sources})
target_include_directories(adbc_driver_manager SYSTEM PUBLIC ${manager})
target_compile_options(adbc_driver_manager PRIVATE -w)
target_link_libraries(adbc_driver_manager PRIVATE ${CMAKE_DL_LIBS})
