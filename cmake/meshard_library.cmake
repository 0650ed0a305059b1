# meshard::meshard: one library with the objects of all folders, static by default. Its users inherit only an include
# folder: no package and no third-party library.
get_property(objects GLOBAL PROPERTY MESHARD_OBJECTS)
if(NOT objects)
  return()
endif()
add_library(meshard ${objects})
add_library(meshard::meshard ALIAS meshard)
set_target_properties(meshard PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                                         SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(meshard PUBLIC cxx_std_20)
target_include_directories(meshard PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                          $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                                          $<INSTALL_INTERFACE:include>)
# -pthread and libdl are part of libc since glibc 2.34; older versions need them explicitly.
target_link_libraries(meshard PUBLIC $<BUILD_INTERFACE:meshard_flags> ${CMAKE_DL_LIBS} -pthread)
