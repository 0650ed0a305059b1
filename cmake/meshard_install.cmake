# `cmake --install` installs include/meshard, libmeshard, the CMake package and the program meshard.
if(NOT TARGET meshard)
  return()
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS meshard EXPORT meshardTargets COMPONENT meshard)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/meshard/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/meshard
        COMPONENT meshard
        FILES_MATCHING PATTERN "*.h" PATTERN "*.inc"
        PATTERN "internal" EXCLUDE PATTERN "*_test*" EXCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/include/meshard/ops/all.h
              ${PROJECT_BINARY_DIR}/include/meshard/ops/op_list.inc
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/meshard/ops COMPONENT meshard)
install(FILES ${PROJECT_BINARY_DIR}/include/meshard/quirks/quirk_names.inc
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/meshard/quirks COMPONENT meshard)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/meshard)
install(EXPORT meshardTargets NAMESPACE meshard:: FILE meshardConfig.cmake DESTINATION ${package_folder}
        COMPONENT meshard)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/meshardConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/meshardConfigVersion.cmake DESTINATION ${package_folder}
        COMPONENT meshard)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT meshard)
if(TARGET meshard_tool)
  install(TARGETS meshard_tool RUNTIME COMPONENT tools)
  # For `meshard fetch` in an installation.
  install(FILES ${PROJECT_SOURCE_DIR}/tools/fetch/fetch_targets.py ${PROJECT_SOURCE_DIR}/tools/fetch/locked_wheel.py
                ${PROJECT_SOURCE_DIR}/tools/fetch/file_trust.py
                ${PROJECT_SOURCE_DIR}/third_party/plugins.lock
          DESTINATION ${CMAKE_INSTALL_DATADIR}/meshard COMPONENT tools)
endif()
foreach(library meshard_mpi meshard_mpich meshard_gloo)  # initialize_processes() opens them
  if(TARGET ${library})
    install(TARGETS ${library} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT meshard)
  endif()
endforeach()
if(TARGET meshard_compile)  # the library's compile_for() starts it
  install(TARGETS meshard_compile RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/meshard COMPONENT meshard)
endif()
