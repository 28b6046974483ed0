# Beginnings and ends of programs under MPI. Included by extras.cmake.
