# Compiler flags of every target of the project.
add_library(meshard_flags INTERFACE)
target_compile_features(meshard_flags INTERFACE cxx_std_20)
target_compile_options(meshard_flags INTERFACE -Wall -Wextra -Wconversion -Wno-sign-conversion
                       # Clang's warning also compares with constants of other files that are compiled together.
                       $<$<CXX_COMPILER_ID:GNU>:-Wshadow>
                       $<$<BOOL:${MESHARD_WERROR}>:-Werror>)
if(MESHARD_SANITIZE)
  target_compile_options(meshard_flags INTERFACE -fsanitize=${MESHARD_SANITIZE} -fno-omit-frame-pointer -g1
                         # Instrumentation hides initializations from g++.
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                         -fno-sanitize-recover=all)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND MESHARD_SANITIZE MATCHES "undefined")
    # With these checks g++ does not regard the comparison of a function's address with null as a constant, so that
    # definitions of ops do not compile (GCC bug 71962). Address sanitizer finds what the first one would.
    target_compile_options(meshard_flags INTERFACE -fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute)
  endif()
  target_link_options(meshard_flags INTERFACE -fsanitize=${MESHARD_SANITIZE})
endif()

# meshard_unity(TARGET [FILES]): compiles FILES files at a time (default: 12), because most of a file's compile time is
# spent in headers and templates that all files use. Names in anonymous namespaces must therefore be unique within a
# folder. -DMESHARD_UNITY=OFF compiles each file separately and without precompiled headers, which is faster if one file
# changes repeatedly.
option(MESHARD_UNITY "Compile files together" ON)
function(meshard_unity target)
  set(files 12)
  if(ARGC GREATER 1)
    set(files ${ARGV1})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${MESHARD_UNITY} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# The headers that test programs precompile: GoogleTest's, or these and <meshard/meshard.h>. An empty library holds
# each, compiled with the flags of the programs.
function(meshard_precompiled_headers name)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.cc CONTENT "")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/${name}.cc)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -O0 -Wno-unused-result -fPIE)  # as executables
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include)
  target_link_libraries(${name} PRIVATE meshard_flags GTest::gmock)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()
if(MESHARD_TESTS AND MESHARD_UNITY)
  meshard_precompiled_headers(meshard_gtest_headers <gmock/gmock.h> <gtest/gtest.h>)
  meshard_precompiled_headers(meshard_test_headers <gmock/gmock.h> <gtest/gtest.h>
                              ${PROJECT_SOURCE_DIR}/meshard/meshard.h)
endif()

# Many tests ignore the tensor of a call that must fail. For clang, the last option counts, so it is linked last.
add_library(meshard_test_warnings INTERFACE)
target_compile_options(meshard_test_warnings INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-unused-result>)

# It takes half of the time of the default linker, for about a hundred programs.
find_program(MESHARD_GOLD ld.gold)
mark_as_advanced(MESHARD_GOLD)

# meshard_test_flags(TARGET [FOLDER]): flags of test programs. They are not optimized, because test code is compiled
# once and runs only briefly, and they share precompiled headers: with FOLDER only GoogleTest's, so that a change of a
# header elsewhere does not affect them.
function(meshard_test_flags target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "FOLDER" "" "")
  target_compile_options(${target} PRIVATE -O0 $<$<CXX_COMPILER_ID:GNU>:-Wno-unused-result>)
  target_link_libraries(${target} PRIVATE meshard_test_warnings)
  if(MESHARD_GOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_link_options(${target} PRIVATE -fuse-ld=gold)
  endif()
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL EXECUTABLE OR NOT MESHARD_UNITY)
    return()
  endif()
  # Part of GoogleTest's flags. Programs without GoogleTest need it too, because g++ requires the same definitions.
  target_compile_definitions(${target} PRIVATE GTEST_HAS_PTHREAD=1)
  if(arg_FOLDER)
    target_precompile_headers(${target} REUSE_FROM meshard_gtest_headers)
  else()
    target_precompile_headers(${target} REUSE_FROM meshard_test_headers)
  endif()
endfunction()

# meshard_folder(NAME [SMALL_FUNCTIONS] [QUICK_BUILD] [QUICK_COMPILER] [DEPENDS folder...])
#
# Builds one folder of meshard/: one library target meshard_NAME with all its sources, and one test program NAME_test
# with all its *_test.cc files. The tests link only what the folder may depend on. SMALL_FUNCTIONS: g++ inlines more.
# It limits by how much inlining may enlarge a file, which is soon reached where files are compiled together: operations
# on layouts take 0.67 to 0.89 of the time without that limit, those on meshes 0.9; other folders gain nothing, and the
# library would grow by 14 %. QUICK_BUILD: compiled with
# -Og, which takes g++ half of the time of -O2. For folders that no call of a compiled program passes through: recording
# an op takes the same time, and tracing, differentiating and lowering 12 layers 9.3 ms instead of 8.5. QUICK_COMPILER:
# the tests compile programs quickly (meshard_quick_compiler).
function(meshard_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SMALL_FUNCTIONS;QUICK_BUILD;QUICK_COMPILER" "" "DEPENDS")
  set(root ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|_testutil)\\.cc$")
  list(FILTER tests INCLUDE REGEX "(_test|_testutil)\\.cc$")
  list(TRANSFORM arg_DEPENDS PREPEND meshard_)
  if(NOT sources)
    add_library(meshard_${name} INTERFACE)
    target_include_directories(meshard_${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(meshard_${name} INTERFACE meshard_flags ${arg_DEPENDS})
  else()
    add_library(meshard_${name} STATIC ${sources})
    target_include_directories(meshard_${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(meshard_${name} PUBLIC meshard_flags ${arg_DEPENDS})
    meshard_unity(meshard_${name} 24)
    if(arg_SMALL_FUNCTIONS)
      target_compile_options(meshard_${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:--param=inline-unit-growth=200>)
    endif()
    if(arg_QUICK_BUILD)
      if(MESHARD_SANITIZE)
        target_compile_options(meshard_${name} PRIVATE -O0)  # clang takes a third of the time of -O1
      else()
        target_compile_options(meshard_${name} PRIVATE $<$<CONFIG:Release>:-Og>)
      endif()
    endif()
    set_property(GLOBAL APPEND PROPERTY MESHARD_OBJECTS $<TARGET_OBJECTS:meshard_${name}>)
  endif()
  if(MESHARD_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE meshard_${name} GTest::gmock_main)
    meshard_test_flags(${name}_test FOLDER)
    meshard_unity(${name}_test 24)
    add_test(NAME ${name}_test COMMAND ${name}_test)
    if(arg_QUICK_COMPILER)
      meshard_quick_compiler(${name}_test)
    endif()
  endif()
endfunction()

# meshard_quick_compiler(TEST...): makes the CPU plugin compile for these tests at its lowest optimization level, in one
# piece, without fusion emitters and LLVM's expensive passes. This takes a quarter of the time, most of which is spent in
# the compiler. `./dev nightly` and MESHARD_TEST_COMPILER=default use the plugin's own settings (tools/dev/run_tests.py).
# Only for tests whose processes load no other compiler, because a plugin ends the process if it does not know a flag.
function(meshard_quick_compiler)
  string(JOIN " " flags --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false
         --xla_cpu_parallel_codegen_split_count=1 --xla_llvm_disable_expensive_passes=true)
  set_property(TEST ${ARGN} APPEND PROPERTY ENVIRONMENT "XLA_FLAGS=${flags}")
endfunction()
