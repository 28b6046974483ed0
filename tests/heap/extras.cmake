# What tests of this folder need beyond one source file each. Included by ../CMakeLists.txt.
set(here ${CMAKE_CURRENT_LIST_DIR})
if(TARGET heap_leaks)  # lines are known where there is debug information
  add_library(heap_leaks_library SHARED ${here}/leaks_library.cpp)
  target_include_directories(heap_leaks_library PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(heap_leaks_library PRIVATE -g)
  target_link_libraries(heap_leaks PRIVATE heap_leaks_library)
  target_compile_options(heap_leaks PRIVATE -g)
endif()
