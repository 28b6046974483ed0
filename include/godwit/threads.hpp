// Everything for programs of threads in one process (substrate threads): docs/threads.md.
#pragma once

#include <godwit/barrier.hpp>
#include <godwit/condition_variable.hpp>
#include <godwit/latch.hpp>
#include <godwit/mutex.hpp>
#include <godwit/semaphore.hpp>
#include <godwit/shared_mutex.hpp>
#include <godwit/thread.hpp>
#include <godwit/thread_specific.hpp>
