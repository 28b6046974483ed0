// The component: the functions of ../component.hpp, in terms of one MPI library.
//
// The only file that includes <mpi.h>, compiled once per MPI found into godwit-mpi-NAME.so
// (../CMakeLists.txt), loaded by ../load.cpp. Uses nothing of godwit but component.hpp, and only MPI's C
// functions. Codes below zero are our own, all others MPI's. Tests: tests/mpi/component_check.cpp exercises
// every function under every MPI found.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "../component.hpp"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if !defined(GODWIT_MPI_NAME)
#error "GODWIT_MPI_NAME is the name of the component, such as \"openmpi\""
#endif
#if MPI_VERSION < 3
#error "godwit needs MPI 3 or newer (one-sided communication with atomic operations)"
#endif

namespace godwit::transport::mpi {
namespace {

enum own_error : int {
  not_running = -1,
  was_finalized = -2,
  wrong_thread = -3,
  too_long = -4,
  already_running = -5,
  separate_windows = -6,
  no_windows = -7,
};
constexpr struct {
  int code;
  const char* text;
} own_errors[] = {
    {not_running, "MPI is not initialised, or already finalized"},
    {was_finalized, "the program has called MPI_Finalize already, and MPI cannot be started again"},
    {wrong_thread,
     "MPI was initialised by another thread with a level below MPI_THREAD_SERIALIZED: call run from that "
     "thread"},
    {too_long, "more than 1 GiB in one message"},
    {already_running, "init was called before"},
    {separate_windows,
     "this MPI keeps a second copy of windows (MPI_WIN_SEPARATE): its owner would not see what others write"},
    {no_windows,
     "this MPI has no one-sided communication for these ranks and this network; with Open MPI 4 try mpirun "
     "--mca osc pt2pt, and MPI_Init_thread with less than MPI_THREAD_MULTIPLE"},
};

constexpr std::size_t chunk_bytes = std::size_t{1} << 30;  // what one call moves at most: counts are int

MPI_Comm comm = MPI_COMM_NULL;  // our duplicate of MPI_COMM_WORLD; null before init and after finalize
bool called_init = false;       // it was us who called MPI_Init_thread
bool mpi_up = false;            // between a good init and finalize: MPI functions may be called

static_assert(sizeof(MPI_Request) <= sizeof(operation::value));
static_assert(sizeof(MPI_Win) <= sizeof(rma_window::value));

// Handles are pointers in one MPI and int in another. Zero stands for none, so a handle that is itself zero
// could not be told from it; no MPI has one (MPICH's handles carry their kind in the upper bits).
template <class Handle>
std::uint64_t to_word(const Handle& handle) {
  std::uint64_t word = 0;
  std::memcpy(&word, &handle, sizeof handle);
  return word;
}
template <class Handle>
Handle from_word(std::uint64_t word) {
  Handle handle;
  std::memcpy(&handle, &word, sizeof handle);
  return handle;
}
MPI_Request request_of(const operation& op) { return from_word<MPI_Request>(op.value); }
MPI_Win win_of(const rma_window& w) { return from_word<MPI_Win>(w.value); }

/// Why a message of @p bytes cannot be sent, or MPI_SUCCESS.
int refused(std::size_t bytes) {
  if (!mpi_up) return not_running;
  if (bytes > chunk_bytes) return too_long;
  return MPI_SUCCESS;
}

/// begin(request) starts an operation on @p bytes.
template <class F>
int start(std::size_t bytes, operation* out, F begin) {
  out->value = 0;
  if (const int error = refused(bytes); error != MPI_SUCCESS) return error;
  MPI_Request request = MPI_REQUEST_NULL;
  const int status = begin(&request);
  if (status == MPI_SUCCESS) out->value = to_word(request);
  return status;
}

void copy_text(char* to, std::size_t bytes, const char* from, std::size_t length) {
  length = std::min(length, bytes - 1);
  for (std::size_t i = 0; i < length; ++i) to[i] = from[i] == '\n' || from[i] == '\t' ? ' ' : from[i];
  to[length] = '\0';
}
void copy_line(char* to, std::size_t bytes, const char* from) {
  copy_text(to, bytes, from, std::strcspn(from, "\r\n"));
}

int level_number(int level) {
  if (level == MPI_THREAD_MULTIPLE) return 3;
  if (level == MPI_THREAD_SERIALIZED) return 2;
  return level == MPI_THREAD_FUNNELED ? 1 : 0;
}

int describe(world* out, int level) {
  int length = 0;
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  char processor[MPI_MAX_PROCESSOR_NAME] = {};
  int status = MPI_Comm_rank(comm, &out->rank);
  if (status == MPI_SUCCESS) status = MPI_Comm_size(comm, &out->size);
  if (status == MPI_SUCCESS) status = MPI_Get_library_version(version, &length);
  if (status == MPI_SUCCESS) status = MPI_Get_processor_name(processor, &length);
  int* largest_tag = nullptr;
  int known = 0;
  if (status == MPI_SUCCESS) status = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &known);
  if (status == MPI_SUCCESS && known) out->largest_tag = *largest_tag;
  copy_line(out->library, sizeof out->library, version);
  copy_line(out->processor, sizeof out->processor, processor);
  out->thread_level = level_number(level);
  out->initialised_here = called_init;
  return status;
}

/// Is there a network adapter here that reads and writes other nodes' memory by itself?
bool has_rdma_network() {
  bool found = false;
  for (const char* kind : {"/sys/class/infiniband", "/sys/class/cxi"})
    if (DIR* folder = opendir(kind); folder != nullptr) {
      for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder))
        found = found || entry->d_name[0] != '.';
      closedir(folder);
    }
  return found;
}

/// Open MPI 4 has several implementations of windows. The one that it takes without an RDMA network, osc/rdma
/// over shared memory, crashes in a compare and swap with oneself as target (open-mpi/ompi #9146), and makes
/// no window over TCP (#9987) or for one rank (#10726). osc/pt2pt can do all that, but Debian switches it off
/// in openmpi-mca-params.conf. What the user says (mpirun --mca osc, OMPI_MCA_osc) comes first. To be called
/// before MPI_Init, true: take the variable away after it.
bool choose_window_kind() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(version, &length);
  const char start[] = "Open MPI v";
  if (std::strncmp(version, start, sizeof start - 1) != 0 || version[sizeof start - 1] > '4' ||
      std::getenv("OMPI_MCA_osc") != nullptr || has_rdma_network())
    return false;
  return setenv("OMPI_MCA_osc", "pt2pt", 1) == 0;
}

int init(world* out) {
  if (mpi_up) return already_running;
  int yes = 0;
  MPI_Finalized(&yes);
  if (yes) return was_finalized;
  int level = MPI_THREAD_SINGLE;
  int status = MPI_SUCCESS;
  MPI_Initialized(&yes);
  if (yes) {
    int main_thread = 1;
    status = MPI_Query_thread(&level);
    if (status == MPI_SUCCESS) status = MPI_Is_thread_main(&main_thread);
    if (status == MPI_SUCCESS && !main_thread && level_number(level) < 2) return wrong_thread;
  } else {
    const bool chosen = choose_window_kind();
    status = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
    if (chosen) unsetenv("OMPI_MCA_osc");
    called_init = status == MPI_SUCCESS;
    // MPICH 4.0 takes errors of finished requests to MPI_COMM_WORLD. If the program made it, its handler
    // stays.
    if (called_init) status = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  if (status != MPI_SUCCESS) return status;
  mpi_up = true;
  status = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (status == MPI_SUCCESS) status = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (status == MPI_SUCCESS) status = describe(out, level);
  return status;
}

/// MPICH before 4.2 over UCX: MPI_Finalize closes a rank's connections, which takes an answer from every
/// peer, and then waits for the launcher without answering anybody (pmodels/mpich #6596). Ranks that close
/// at the same time answer each other. One that still polls answers too early: the first rank is gone when
/// it closes itself, and both wait for ever. So nobody closes until all can be expected to have left the
/// collective operation before it, and none polls meanwhile: 50 ms asleep. Without: one end in 25 between
/// two busy hosts.
void part_quietly() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0, major = 0, minor = 0;
  MPI_Get_library_version(version, &length);
  if (std::sscanf(version, "MPICH Version: %d.%d", &major, &minor) != 2 || major > 4 ||
      (major == 4 && minor >= 2) || std::strstr(version, "ucx") == nullptr)
    return;
  constexpr timespec pause{0, 50'000'000};
  nanosleep(&pause, nullptr);
}

int finalize() {
  if (!mpi_up) return MPI_SUCCESS;
  mpi_up = false;
  int status = MPI_SUCCESS, finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) {
    if (comm != MPI_COMM_NULL) status = MPI_Comm_free(&comm);
    if (called_init) {
      part_quietly();
      const int last = MPI_Finalize();
      if (status == MPI_SUCCESS) status = last;
    }
  }
  comm = MPI_COMM_NULL;
  called_init = false;
  return status;
}

int allgather(const void* mine, void* all, std::size_t bytes) {
  if (const int error = refused(bytes); error != MPI_SUCCESS) return error;
  const int count = static_cast<int>(bytes);
  return MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, comm);
}

int gather(const void* mine, void* all, std::size_t bytes, int root) {
  if (const int error = refused(bytes); error != MPI_SUCCESS) return error;
  const int count = static_cast<int>(bytes);
  return MPI_Gather(mine, count, MPI_BYTE, all, count, MPI_BYTE, root, comm);
}

int allreduce(std::uint64_t* words, std::size_t count, reduction how) {
  if (const int error = refused(count * sizeof *words); error != MPI_SUCCESS) return error;
  const MPI_Op op = how == reduction::least  ? MPI_MIN
                    : how == reduction::most ? MPI_MAX
                    : how == reduction::sum  ? MPI_SUM
                                             : MPI_BAND;
  return MPI_Allreduce(MPI_IN_PLACE, words, static_cast<int>(count), MPI_UINT64_T, op, comm);
}

int bcast(void* data, std::size_t bytes, int root) {
  if (const int error = refused(bytes); error != MPI_SUCCESS) return error;
  return MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, root, comm);
}

int barrier_begin(operation* out) {  // also what ranks that end do first: the program may have finalized
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) return not_running;
  return start(0, out, [](MPI_Request* request) { return MPI_Ibarrier(comm, request); });
}

int isend(const void* data, std::size_t bytes, int to, int tag, operation* out) {
  return start(bytes, out, [=](MPI_Request* request) {
    return MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, comm, request);
  });
}

int irecv(void* data, std::size_t bytes, int from, int tag, operation* out) {
  const int source = from == any_source ? MPI_ANY_SOURCE : from;
  const int wanted = tag == any_tag ? MPI_ANY_TAG : tag;
  return start(bytes, out, [=](MPI_Request* request) {
    return MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, source, wanted, comm, request);
  });
}

int test(operation* op, bool* done, int* source, int* tag, std::size_t* bytes) {
  *done = false;
  if (!mpi_up) return not_running;
  if (op->value == 0) {
    *done = true;
    return MPI_SUCCESS;
  }
  MPI_Request request = request_of(*op);
  MPI_Status found;
  int flag = 0;
  int status = MPI_Test(&request, &flag, &found);
  // An operation that failed (a message longer than its buffer) is gone, too.
  *done = flag != 0 || request == MPI_REQUEST_NULL;
  op->value = *done ? 0 : to_word(request);
  if (!*done || status != MPI_SUCCESS) return status;
  if (source != nullptr) *source = found.MPI_SOURCE;
  if (tag != nullptr) *tag = found.MPI_TAG;
  if (bytes != nullptr) {
    int count = 0;
    status = MPI_Get_count(&found, MPI_BYTE, &count);
    *bytes = count < 0 ? 0 : static_cast<std::size_t>(count);
  }
  return status;
}

int cancel(operation* op) {
  if (!mpi_up) return not_running;
  if (op->value == 0) return MPI_SUCCESS;
  MPI_Request request = request_of(*op);
  int status = MPI_Cancel(&request);
  const int waited = MPI_Wait(&request, MPI_STATUS_IGNORE);
  op->value = 0;
  return status == MPI_SUCCESS ? waited : status;
}

/// What may be promised about all our windows. An MPI ignores the keys it does not know.
int set_hints(MPI_Info info) {
  const char* const hints[][2] = {
      {"no_locks", "false"},
      {"same_disp_unit", "true"},
      {"accumulate_max_bytes", "8"},                        // MPICH: the same
      {"which_accumulate_ops", "sum,replace,no_op,cswap"},  // MPICH
  };
  int status = MPI_SUCCESS;
  for (const auto& hint : hints)
    if (status == MPI_SUCCESS) status = MPI_Info_set(info, hint[0], hint[1]);
  return status;
}

int win_create(void* base, std::size_t bytes, rma_window* out) {
  out->value = 0;
  if (!mpi_up) return not_running;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Win win = MPI_WIN_NULL;
  int status = MPI_Info_create(&info);
  if (status != MPI_SUCCESS) return status;
  status = set_hints(info);
  if (status == MPI_SUCCESS) status = MPI_Win_create(base, static_cast<MPI_Aint>(bytes), 1, info, comm, &win);
  MPI_Info_free(&info);
  if (status == MPI_ERR_WIN) return no_windows;  // what Open MPI says when no kind of window fits
  if (status == MPI_SUCCESS) status = MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  if (status == MPI_SUCCESS) {
    int found = 0;
    void* model = nullptr;
    status = MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &found);
    if (status == MPI_SUCCESS && (!found || *static_cast<int*>(model) != MPI_WIN_UNIFIED)) {
      MPI_Win_free(&win);
      return separate_windows;
    }
  }
  if (status == MPI_SUCCESS) status = MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
  if (status == MPI_SUCCESS) out->value = to_word(win);
  return status;
}

/// Open MPI's osc pt2pt frees a window while its last answers to others may not be marked as sent. Marking
/// them later takes a lock in freed memory, and may wait for it for ever. Once all ranks have left unlock_all
/// these answers have arrived: progress is all that is left to make, a few answers a call.
int finish_answers() {
  MPI_Request all_are_here = MPI_REQUEST_NULL;
  int status = MPI_Ibarrier(comm, &all_are_here);
  if (status == MPI_SUCCESS) status = MPI_Wait(&all_are_here, MPI_STATUS_IGNORE);
  int ranks = 0;
  if (status == MPI_SUCCESS) status = MPI_Comm_size(comm, &ranks);
  for (int left = std::min(2 + ranks / 16, 64); left > 0 && status == MPI_SUCCESS; --left) {
    int nobody_sends_here = 0;
    status = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &nobody_sends_here, MPI_STATUS_IGNORE);
  }
  return status;
}

int win_free(rma_window* w) {
  if (!mpi_up) return not_running;
  if (w->value == 0) return MPI_SUCCESS;
  MPI_Win win = win_of(*w);
  w->value = 0;
  int status = MPI_Win_unlock_all(win);
  if (status == MPI_SUCCESS) status = finish_answers();
  const int freed = MPI_Win_free(&win);
  return status == MPI_SUCCESS ? freed : status;
}

/// transfer(offset, count) moves each piece of @p bytes that one call takes.
template <class F>
int in_chunks(std::size_t bytes, F transfer) {
  if (!mpi_up) return not_running;
  int status = MPI_SUCCESS;
  for (std::size_t at = 0; at < bytes && status == MPI_SUCCESS; at += chunk_bytes)
    status = transfer(at, static_cast<int>(std::min(chunk_bytes, bytes - at)));
  return status;
}

int get(const rma_window* w, void* to, std::size_t bytes, int target, std::uint64_t displacement) {
  return in_chunks(bytes, [=](std::size_t at, int count) {
    return MPI_Get(static_cast<char*>(to) + at, count, MPI_BYTE, target,
                   static_cast<MPI_Aint>(displacement + at), count, MPI_BYTE, win_of(*w));
  });
}

int put(const rma_window* w, const void* from, std::size_t bytes, int target, std::uint64_t displacement) {
  return in_chunks(bytes, [=](std::size_t at, int count) {
    return MPI_Put(static_cast<const char*>(from) + at, count, MPI_BYTE, target,
                   static_cast<MPI_Aint>(displacement + at), count, MPI_BYTE, win_of(*w));
  });
}

int fetch_op(const rma_window* w, rma_op op, const std::uint64_t* operand, std::uint64_t* result, int target,
             std::uint64_t displacement) {
  if (!mpi_up) return not_running;
  static const std::uint64_t zero = 0;  // no_op reads no operand, but some MPIs want an address
  const MPI_Op mpi_op = op == rma_op::add ? MPI_SUM : op == rma_op::replace ? MPI_REPLACE : MPI_NO_OP;
  return MPI_Fetch_and_op(operand != nullptr ? operand : &zero, result, MPI_UINT64_T, target,
                          static_cast<MPI_Aint>(displacement), mpi_op, win_of(*w));
}

int compare_swap(const rma_window* w, const std::uint64_t* value, const std::uint64_t* expected,
                 std::uint64_t* result, int target, std::uint64_t displacement) {
  if (!mpi_up) return not_running;
  return MPI_Compare_and_swap(value, expected, result, MPI_UINT64_T, target,
                              static_cast<MPI_Aint>(displacement), win_of(*w));
}

int flush(const rma_window* w, int target) {
  if (!mpi_up) return not_running;
  return MPI_Win_flush(target, win_of(*w));
}

void error_text(int code, char* text, std::size_t bytes) {
  if (bytes == 0) return;
  for (const auto& own : own_errors)
    if (own.code == code) return copy_line(text, bytes, own.text);
  if (mpi_up) {  // elsewhere most MPIs end the program when asked
    char long_text[MPI_MAX_ERROR_STRING + 1] = {};
    int length = 0;
    // A code that MPI does not know makes it call the handler of MPI_COMM_WORLD, which is the program's.
    int last = 0, known = 0;
    void* last_used = nullptr;
    if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last_used, &known) == MPI_SUCCESS && known)
      last = *static_cast<int*>(last_used);
    if (code >= 0 && (code <= std::max(last, static_cast<int>(MPI_ERR_LASTCODE))) &&
        MPI_Error_string(code, long_text, &length) == MPI_SUCCESS && long_text[0] != '\0')
      return copy_text(text, bytes, long_text, std::strlen(long_text));
  }
  std::snprintf(text, bytes, "%s error %d", GODWIT_MPI_NAME, code);
}

void abort(int status) {
  int initialised = 0, finalized = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalized);
  if (initialised && !finalized) MPI_Abort(comm != MPI_COMM_NULL ? comm : MPI_COMM_WORLD, status);
  _exit(status);
}

constexpr component table = {
    .abi = component_abi,
    .name = GODWIT_MPI_NAME,
    .init = init,
    .finalize = finalize,
    .allgather = allgather,
    .gather = gather,
    .allreduce = allreduce,
    .bcast = bcast,
    .barrier_begin = barrier_begin,
    .isend = isend,
    .irecv = irecv,
    .test = test,
    .cancel = cancel,
    .win_create = win_create,
    .win_free = win_free,
    .get = get,
    .put = put,
    .fetch_op = fetch_op,
    .compare_swap = compare_swap,
    .flush = flush,
    .error_text = error_text,
    .abort = abort,
};

}  // namespace
}  // namespace godwit::transport::mpi

extern "C" __attribute__((visibility("default"))) const godwit::transport::mpi::component*
godwit_mpi_component(std::uint32_t abi) {
  return abi == godwit::transport::mpi::component_abi ? &godwit::transport::mpi::table : nullptr;
}
