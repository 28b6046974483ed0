// Everything for users: fork-join and futures whose threads migrate.
#pragma once

#include <godwit/codec.hpp>
#include <godwit/error.hpp>
#include <godwit/future.hpp>
#include <godwit/options.hpp>
#include <godwit/policy.hpp>
#include <godwit/runtime.hpp>
#include <godwit/task.hpp>
