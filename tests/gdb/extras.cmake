# The programs that gdb_gdb and gdb_in_place debug. Included by ../CMakeLists.txt. The library stays as the preset builds it:
# without -g in release builds, which is what users have.
if(TARGET gdb_gdb)
  foreach(name situation parked_situation memory_situation)
    add_executable(gdb_${name} ${CMAKE_CURRENT_LIST_DIR}/${name}.cpp)
    target_link_libraries(gdb_${name} PRIVATE godwit godwit_build)
    target_include_directories(gdb_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_options(gdb_${name} PRIVATE -O2 -g)
    add_dependencies(gdb_gdb gdb_${name})
    add_dependencies(gdb_in_place gdb_${name})
  endforeach()
  foreach(test gdb_gdb gdb_in_place)
    target_compile_definitions(${test} PRIVATE SITUATION="$<TARGET_FILE:gdb_situation>"
                                               PARKED_SITUATION="$<TARGET_FILE:gdb_parked_situation>"
                                               MEMORY_SITUATION="$<TARGET_FILE:gdb_memory_situation>")
  endforeach()
endif()
