# Benchmarks on global memory under MPI: the ranks as one host, and each rank a host of its own, where memory of others is
# cached. (The same programs without MPI: bench/CMakeLists.txt.) Included by ../CMakeLists.txt.
if(TARGET bench_global_graph)
  include(${CMAKE_CURRENT_LIST_DIR}/../mpi/extras.cmake)
  # godwit_add_bench_mpi_test(NAME ARGUMENT...)
  function(godwit_add_bench_mpi_test name)
    godwit_add_mpi_test(NAME mpi.${name} RANKS 2 COMMAND $<TARGET_FILE:bench_${name}> ${ARGN} --reps 1 --workers 2)
    godwit_add_mpi_test(NAME mpi.${name}.hosts RANKS 2
                        COMMAND $<TARGET_FILE:bench_${name}> ${ARGN} --reps 1 --workers 2 --godwit-hosts=ranks)
  endfunction()
  godwit_add_bench_mpi_test(global_graph --scale 8)
  godwit_add_bench_mpi_test(global_spmv --size 5000 --times 3)
  godwit_add_bench_mpi_test(global_utsmem --size 4)
  godwit_add_bench_mpi_test(global_nbody --size 500 --steps 2)
endif()
