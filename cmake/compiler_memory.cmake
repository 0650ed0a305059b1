# g++ looks for garbage in its own memory from 128 MB on, and finds little. Beginning at 1 GB saves a fifth of the time of
# an unoptimized file of tests; the largest that was measured takes 1.0 GB. Only where each core has room for that.
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR memory "${memory} / ${cores}")  # MiB for each core
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND memory GREATER 2500)
  add_compile_options(--param=ggc-min-heapsize=1000000)
endif()
