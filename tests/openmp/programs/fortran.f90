! Fortran: its names of the functions, and tasks.
recursive function fib(n) result(f)
  integer, intent(in) :: n
  integer :: f, x, y
  if (n < 2) then
    f = n
    return
  end if
  !$omp task shared(x)
  x = fib(n - 1)
  !$omp end task
  !$omp task shared(y)
  y = fib(n - 2)
  !$omp end task
  !$omp taskwait
  f = x + y
end function fib

program main
  use omp_lib
  implicit none
  integer :: i, total, nested, f, chunk
  integer(kind=omp_sched_kind) :: kind
  integer(kind=omp_lock_kind) :: lock
  integer(kind=omp_nest_lock_kind) :: nest
  real(8) :: values(100)
  integer, external :: fib
  total = 0
  nested = 0
  call omp_set_num_threads(3)
  call omp_set_schedule(omp_sched_guided, 4)
  call omp_get_schedule(kind, chunk)
  call omp_init_lock(lock)
  call omp_init_nest_lock(nest)
  !$omp parallel do schedule(runtime)
  do i = 1, 100
    values(i) = sqrt(real(i, 8))
    call omp_set_lock(lock)
    total = total + omp_get_num_threads()
    call omp_unset_lock(lock)
    call omp_set_nest_lock(nest)
    call omp_set_nest_lock(nest)
    nested = nested + 1
    call omp_unset_nest_lock(nest)
    call omp_unset_nest_lock(nest)
  end do
  !$omp parallel
  !$omp single
  f = fib(18)
  !$omp end single
  !$omp end parallel
  call omp_destroy_lock(lock)
  call omp_destroy_nest_lock(nest)
  print '(a, i0, a, i0, a, f0.6, a, i0, a, i0, a, l1)', 'fib ', f, ', total ', total + nested, ', sum ', sum(values), &
    ', chunk ', chunk, ', threads ', omp_get_max_threads(), ', in parallel ', omp_in_parallel()
end program main
