# find_package(tenon): the imported targets tenon::tenon, the shared library,
# and tenon::static.
get_filename_component(_tenon_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET tenon::tenon)
  add_library(tenon::tenon SHARED IMPORTED)
  set_target_properties(tenon::tenon PROPERTIES
    IMPORTED_LOCATION "${_tenon_prefix}/lib/libtenon.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_tenon_prefix}/include")
endif()
if(NOT TARGET tenon::static)
  find_package(Threads QUIET)
  add_library(tenon::static STATIC IMPORTED)
  set_target_properties(tenon::static PROPERTIES
    IMPORTED_LOCATION "${_tenon_prefix}/lib/libtenon.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_tenon_prefix}/include"
    INTERFACE_LINK_LIBRARIES "m;${CMAKE_DL_LIBS};${CMAKE_THREAD_LIBS_INIT}")
endif()
unset(_tenon_prefix)
