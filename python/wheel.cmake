# What the wheel contains besides the files of python/meshard: the extension module, stubs, the program meshard
# with what `meshard fetch` needs, and beside it the program meshard-compile, which compiles for absent hardware.
install(TARGETS _meshard LIBRARY DESTINATION meshard COMPONENT python)

set(stubs ${CMAKE_CURRENT_BINARY_DIR}/stubs)
file(GLOB_RECURSE package_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/meshard/*.py)
add_custom_command(OUTPUT ${stubs}/_meshard/__init__.pyi
  COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/bindings/stubs/make_stubs.py --package ${PROJECT_BINARY_DIR}/python
          --results ${made}/results.pyi --out ${stubs}
  DEPENDS _meshard ${package_files} ${CMAKE_CURRENT_SOURCE_DIR}/bindings/stubs/make_stubs.py
          ${CMAKE_CURRENT_SOURCE_DIR}/bindings/stubs/package_stubs.py VERBATIM)
add_custom_target(meshard_wheel DEPENDS ${stubs}/_meshard/__init__.pyi)  # all that the wheel needs
install(DIRECTORY ${stubs}/ DESTINATION meshard COMPONENT python)

# Programs of this build, or of the installed library. The program meshard may be missing (tools/meshard).
if(TARGET meshard_compile)
  add_dependencies(meshard_wheel meshard_compile)
  install(TARGETS meshard_compile RUNTIME DESTINATION meshard/bin COMPONENT python)
  if(TARGET meshard_tool)
    add_dependencies(meshard_wheel meshard_tool)
    install(TARGETS meshard_tool RUNTIME DESTINATION meshard/bin COMPONENT python)
  endif()
else()
  get_filename_component(prefix ${meshard_DIR}/../../.. ABSOLUTE)
  install(PROGRAMS ${prefix}/libexec/meshard/meshard-compile DESTINATION meshard/bin COMPONENT python)
  if(EXISTS ${prefix}/bin/meshard)
    install(PROGRAMS ${prefix}/bin/meshard DESTINATION meshard/bin COMPONENT python)
  endif()
endif()
install(FILES ${root}/tools/fetch/fetch_targets.py ${root}/tools/fetch/locked_wheel.py ${root}/tools/fetch/file_trust.py
              ${root}/third_party/plugins.lock
        DESTINATION meshard/share/meshard COMPONENT python)

# The MPI library of the machine that builds the wheel, which no other machine needs to have.
option(MESHARD_WHEEL_MPI "Put libmeshard_mpi.so into the wheel" OFF)
if(MESHARD_WHEEL_MPI)
  if(TARGET meshard_mpi)
    add_dependencies(meshard_wheel meshard_mpi)
    install(TARGETS meshard_mpi LIBRARY DESTINATION meshard COMPONENT python)
  elseif(DEFINED prefix)
    install(PROGRAMS ${prefix}/lib/libmeshard_mpi.so DESTINATION meshard COMPONENT python)
  else()
    message(FATAL_ERROR "MESHARD_WHEEL_MPI: CMake found no MPI (Debian: libopenmpi-dev)")
  endif()
endif()
