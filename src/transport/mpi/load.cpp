// Where components are looked for, and how they are opened. See load.hpp.
//
// Looked for beside the library or program that contains this code (an installed tree can be moved), beside
// the program, where the program's dynamic loader looks (the flags of pkg-config and of the CMake package
// name the folder of the tree that they come from: cmake/godwit_install.cmake), then where this build
// installs to and builds to: GODWIT_* macros from CMakeLists.txt.
#include "transport/mpi/load.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

namespace godwit::transport::mpi {
namespace {

namespace fs = std::filesystem;
using names = std::vector<std::string>;

const names mpich_families = {"mpich", "intelmpi",
                              "mvapich"};  // the same binary interface, the same launchers
const names all_families = {"openmpi", "mpich", "intelmpi", "mvapich"};

bool contains(const names& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::string joined(const names& list, std::string_view separator) {
  std::string text;
  for (const std::string& name : list) text += (text.empty() ? "" : std::string(separator)) + name;
  return text;
}

/// The MPI in this program's memory, by names that occur in one kind of MPI only and are part of its binary
/// interface.
family_hint mpi_in_memory() {
  if (dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != nullptr) return family_hint::openmpi;
  if (dlsym(RTLD_DEFAULT, "MPIR_Dup_fn") != nullptr ||
      dlsym(RTLD_DEFAULT, "MPIR_F08_MPI_IN_PLACE") != nullptr)
    return family_hint::mpich;
  return family_hint::none;
}

names families_of(family_hint hint) {
  if (hint == family_hint::openmpi) return {"openmpi"};
  return hint == family_hint::mpich ? mpich_families : all_families;
}

std::string file_name(const std::string& family) { return "godwit-mpi-" + family + ".so"; }

const char* title(family_hint hint) {
  return hint == family_hint::openmpi ? "Open MPI" : "an MPI of the MPICH family";
}

/// Where the dynamic loader looks for what the program needs: LD_LIBRARY_PATH, the program's run path, the
/// system's.
std::vector<fs::path> search_path() {
  std::vector<fs::path> found;
#ifdef __GLIBC__
  void* self = dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo head{};
  if (self == nullptr || dlinfo(self, RTLD_DI_SERINFOSIZE, &head) != 0) return found;
  std::vector<std::max_align_t> room(head.dls_size / sizeof(std::max_align_t) + 1);
  auto* list = reinterpret_cast<Dl_serinfo*>(room.data());
  if (dlinfo(self, RTLD_DI_SERINFOSIZE, list) != 0 || dlinfo(self, RTLD_DI_SERINFO, list) != 0) return found;
  for (unsigned i = 0; i < list->dls_cnt; ++i) found.emplace_back(list->dls_serpath[i].dls_name);
#endif
  return found;
}

std::vector<fs::path> folders() {
  std::vector<fs::path> found;
  const auto add = [&](const fs::path& path) {
    const fs::path clean = path.lexically_normal();
    if (std::find(found.begin(), found.end(), clean) == found.end()) found.push_back(clean);
  };
  const auto add_beside = [&](const fs::path& file) {
    std::error_code failed;
    const fs::path real = fs::canonical(file, failed);
    if (failed) return;
    const fs::path here = real.parent_path();
    add(here / "godwit");
    add(here / "lib" / "godwit");
    add(here / ".." / GODWIT_LIBDIR / "godwit");
    add(here / ".." / "lib" / "godwit");
  };
  Dl_info info{};
  // For code in the program itself dli_fname is argv[0], which may be a bare word.
  if (dladdr(reinterpret_cast<const void*>(&load_component), &info) != 0 && info.dli_fname != nullptr &&
      std::string_view(info.dli_fname).find('/') != std::string_view::npos)
    add_beside(info.dli_fname);
  add_beside("/proc/self/exe");
  for (const fs::path& folder : search_path()) {
    std::error_code failed;
    // most of them are the system's, with other things: not worth a word
    for (const std::string& family : all_families)
      if (fs::exists(folder / file_name(family), failed)) add(folder);
  }
  add(GODWIT_COMPONENTS_INSTALLED);
  add(GODWIT_COMPONENTS_BUILT);
  return found;
}

/// The first file of that family, or "".
std::string find_component(const std::string& family, const std::vector<fs::path>& where) {
  for (const fs::path& folder : where) {
    std::error_code failed;
    const fs::path file = folder / file_name(family);
    if (fs::exists(file, failed) && !failed) return file.string();
  }
  return {};
}

std::string why_not() {
  const char* text = dlerror();
  return text != nullptr ? text : "the dynamic loader does not say why";
}

/// A static program can open libraries, but they bring a second C library along, and MPI crashes in it.
bool statically_linked() { return dlsym(RTLD_DEFAULT, "dlopen") == nullptr; }

const component* open_component(const std::string& file, std::string& error) {
  // RTLD_LOCAL at first: only the component itself can say which MPI it is.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    error = "cannot open the MPI component " + file + ": " + why_not() +
            "\nis that MPI library installed here, and in LD_LIBRARY_PATH if it is in a place of its own?";
    return nullptr;
  }
  auto* function = reinterpret_cast<component_function*>(dlsym(library, component_symbol));
  const component* table = function != nullptr ? function(component_abi) : nullptr;
  if (table == nullptr || table->abi != component_abi) {
    error = file +
            (function == nullptr ? " is no MPI component of godwit: " + why_not()
                                 : " belongs to another version of godwit (it does not speak version " +
                                       std::to_string(component_abi) + " of the interface)") +
            "\nbuild and install godwit again, all of it";
    dlclose(library);
    return nullptr;
  }
  // Plugins of some builds of Open MPI take its symbols from the global scope, without naming libmpi.
  if (std::string_view(table->name) == "openmpi") dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  return table;
}

std::string nothing_found(const names& families, const names& there, const std::vector<fs::path>& where,
                          std::string_view reason) {
  names files, places;
  for (const std::string& family : families) files.push_back(file_name(family));
  for (const fs::path& folder : where) places.push_back(folder.string());
  std::string text = "no MPI component " + joined(files, " or ");
  if (!reason.empty()) text += " (" + std::string(reason) + ")";
  text += " in " + joined(places, ", ");
  if (!there.empty()) text += "; there is only " + joined(there, ", ");
  const bool openmpi = contains(families, "openmpi"), mpich = contains(families, "mpich");
  const std::string packages = openmpi && mpich ? "libopenmpi-dev or libmpich-dev"
                               : openmpi        ? "libopenmpi-dev"
                               : mpich          ? "libmpich-dev"
                                                : "that MPI with its headers";
  return text + "\ninstall " + packages +
         " and build godwit again, or configure it with -DGODWIT_MPI_COMPILERS=/path/mpicxx; if the "
         "component is in another folder, name "
         "that file with --godwit-mpi=/path/godwit-mpi-....so (GODWIT_MPI), or the folder in LD_LIBRARY_PATH";
}

/// Why these families were looked for, if it was not said.
std::string reason_for(family_hint loaded, family_hint hint) {
  if (loaded != family_hint::none) return "the program itself uses " + std::string(title(loaded));
  return hint != family_hint::none ? "the launcher is that of " + std::string(title(hint)) : std::string();
}

}  // namespace

const component* load_component(const std::string& wanted, family_hint hint, std::string& error) {
  error.clear();
  if (statically_linked()) {
    error =
        "this program is linked statically (-static): it cannot load an MPI\nlink it without -static to run "
        "it on "
        "several nodes";
    return nullptr;
  }
  const family_hint loaded = mpi_in_memory();
  const auto fits = [&](const std::string& family) {
    if (loaded == family_hint::none || contains(families_of(loaded), family)) return true;
    error =
        "the program itself uses " + std::string(title(loaded)) + ", so the MPI component " + family +
        " cannot be used: two MPIs in one process do not work\nlet godwit choose, or link the program to " +
        family;
    return false;
  };
  if (wanted.find('/') != std::string::npos) {
    const component* table = open_component(wanted, error);
    return table != nullptr && fits(table->name) ? table : nullptr;
  }
  if (!wanted.empty() && !fits(wanted)) return nullptr;

  const family_hint chosen = loaded != family_hint::none ? loaded : hint;
  const names candidates = wanted.empty() ? families_of(chosen) : names{wanted};
  const std::vector<fs::path> where = folders();
  names there;
  for (const std::string& family : all_families)
    if (!find_component(family, where).empty()) there.push_back(family);
  names files;
  for (const std::string& family : candidates)
    if (const std::string file = find_component(family, where); !file.empty()) files.push_back(file);

  if (files.empty()) {
    error =
        nothing_found(candidates, there, where, wanted.empty() ? reason_for(loaded, hint) : std::string());
    return nullptr;
  }
  if (files.size() > 1 && wanted.empty() && chosen == family_hint::none) {
    error = "cannot tell which MPI started this program, and there are components for " +
            joined(there, " and ") + "\nname one of them, or start it with mpirun";
    return nullptr;
  }
  for (const std::string& file : files)
    if (const component* table = open_component(file, error); table != nullptr) {
      error.clear();
      return table;
    }
  return nullptr;
}

}  // namespace godwit::transport::mpi
