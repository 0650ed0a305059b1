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

# What carries collectives between processes on the machine that builds the wheel. These are opened in runs of several
# processes only; where MPI or Gloo itself is missing, the error says what to install.
foreach(library meshard_mpi meshard_mpich meshard_gloo)
  if(TARGET ${library})
    add_dependencies(meshard_wheel ${library})
    install(TARGETS ${library} LIBRARY DESTINATION meshard COMPONENT python)
  elseif(DEFINED prefix AND EXISTS ${prefix}/lib/lib${library}.so)
    install(PROGRAMS ${prefix}/lib/lib${library}.so DESTINATION meshard COMPONENT python)
  endif()
endforeach()
