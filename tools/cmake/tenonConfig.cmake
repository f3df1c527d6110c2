# find_package(tenon): the imported target tenon::tenon.
get_filename_component(_tenon_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET tenon::tenon)
  add_library(tenon::tenon SHARED IMPORTED)
  set_target_properties(tenon::tenon PROPERTIES
    IMPORTED_LOCATION "${_tenon_prefix}/lib/libtenon.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_tenon_prefix}/include")
endif()
unset(_tenon_prefix)
