// Finds and opens the MPI component: the file godwit-mpi-FAMILY.so that implements component.hpp.
//
// Godwit is not linked to any MPI. A program that an MPI launcher started loads the component that belongs to
// that launcher, or to the MPI library that the program itself is linked to. The only place with dlopen and
// dlsym. Called by src/runtime at launch. Components are built by CMakeLists.txt here, out of
// plugin/plugin.cpp. Tests: tests/mpi/component_check.cpp.
#pragma once

#include "transport/mpi/component.hpp"

#include <string>

namespace godwit::transport::mpi {

/// Which kind of launcher started this process, as far as its environment tells. mpich stands for everything
/// that descends from MPICH and starts like it: MPICH, Intel MPI, MVAPICH.
enum class family_hint { none, openmpi, mpich };

/// The table of a component, never unloaded again; nothing of MPI is started. @p wanted: a family ("openmpi",
/// "mpich", "mvapich", "intelmpi"), a path (with a slash) of a component, or "": the family whose library the
/// program has in memory already, else that of @p hint, else the only one there is. Null: @p error has one or
/// two lines without a newline at the end that say what was looked for, where, and what to do. Loading an MPI
/// takes milliseconds to tens of them.
const component* load_component(const std::string& wanted, family_hint hint, std::string& error);

}  // namespace godwit::transport::mpi
