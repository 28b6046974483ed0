# The program that gdb_gdb debugs. Included by ../CMakeLists.txt. The library stays as the preset builds it: without
# -g in release builds, which is what users have.
if(TARGET gdb_gdb)
  add_executable(gdb_situation ${CMAKE_CURRENT_LIST_DIR}/situation.cpp)
  target_link_libraries(gdb_situation PRIVATE godwit godwit_build)
  target_include_directories(gdb_situation PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(gdb_situation PRIVATE -O2 -g)
  add_dependencies(gdb_gdb gdb_situation)
  target_compile_definitions(gdb_gdb PRIVATE SITUATION="$<TARGET_FILE:gdb_situation>")
endif()
