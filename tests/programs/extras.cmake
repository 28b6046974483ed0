# The programs on global memory (bench/global) at small sizes under every MPI: two ranks of one host. Each checks its result
# against a serial or library one. Without MPI: bench/CMakeLists.txt.
include(${CMAKE_CURRENT_LIST_DIR}/../mpi/extras.cmake)

if(TARGET bench_global_stream)
  function(godwit_add_global_program_test name)
    godwit_add_mpi_test(NAME programs.${name} RANKS 2 TIMEOUT 120
                        COMMAND $<TARGET_FILE:bench_global_${name}> ${ARGN} --reps 1 --workers 2)
  endfunction()
  godwit_add_global_program_test(micro -n 500 --blocks 3 --size 5000)
  godwit_add_global_program_test(bandwidth --size 2 --times 1)
  godwit_add_global_program_test(stream --size 300001 --stream-size 100003 --grain 4096 --passes 2)
  godwit_add_global_program_test(gups --size 65536 --grain 1024 --ways values,atomics)
  godwit_add_global_program_test(cilksort --size 200003 --leaf 1000 --merge-leaf 3000)
  godwit_add_global_program_test(heat --size 99 --steps 31 --rows 4)
endif()
