// See network.hpp.
#include "runtime/network.hpp"

#include "base/text.hpp"
#include "transport/net/relay.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace godwit::runtime {

using choice::directory;
using transport::mpi::reduction;
using transport::net::address;

namespace {

constexpr std::uint64_t patience_ns = 5'000'000'000;

/// The same word in all ranks of one machine, whatever hosts they are said to be.
std::uint64_t machine_word() {
  std::uint64_t word = 0xcbf29ce484222325;
  for (const char c : base::first_line("/proc/sys/kernel/random/boot_id"))
    word = (word ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return word;
}

address switch_of(const options& opts) {
  return transport::net::read_address(opts.switch_at, opts.directory == directory::xdp
                                                          ? std::uint16_t{godwit_switch_port}
                                                          : transport::net::openflow_port);
}

using told = transport::net::channel_setup::told;
told who_is_told(directory d) noexcept {
  return d == directory::datagrams ? told::nobody : d == directory::ovs ? told::openflow : told::in_band;
}

[[noreturn]] void be_relay(const transport::net::socket& s, std::uint64_t seed, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "godwit-relay");
  if (getppid() != parent) _exit(1);  // it died meanwhile
  signal(SIGINT, SIG_IGN);            // the first rank ends it
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  for (transport::net::relay r(s, seed);;) r.turn(1000);
}

}  // namespace

std::string network::problem_of(const options& opts) {
  if (opts.directory == directory::software) return {};
  if (opts.way != choice::way::automatic && opts.way != choice::way::server)
    return "godwit: directory: only a companion that serves all workers of its host can have a channel of "
           "datagrams: use way=server, or leave it to the library (way=auto)";
  if (opts.companions != 1)
    return "godwit: directory: the companion that has the channel of datagrams serves all workers of its "
           "host: leave --godwit-companions (GODWIT_COMPANIONS) away";
  if (opts.directory != directory::xdp && opts.directory != directory::ovs) return {};
  if (opts.switch_at.empty())
    return "godwit: directory=xdp and ovs: where is the switch? Give --godwit-switch-at=ADDRESS "
           "(GODWIT_SWITCH_AT), "
           "see docs/switch.md";
  try {
    static_cast<void>(switch_of(opts));
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return {};
}

address network::start_relay(address own, std::uint64_t seed) {
  const transport::net::socket s;
  own.port = s.port();
  const pid_t parent = getpid();
  relay_ = fork();
  if (relay_ == 0) be_relay(s, seed, parent);
  if (relay_ < 0)
    throw std::runtime_error(std::string("godwit: cannot start the relay of directory=relay: ") +
                             std::strerror(errno) + ": raise the limit on processes (ulimit -u)");
  return own;
}

void network::start(const mpi_session& session, const placement& place, const options& opts,
                    std::uint64_t run, const transport::word* life) {
  const bool has_channel = life != nullptr;
  const std::uint64_t word = machine_word();
  const std::uint64_t least = session.reduce(word, reduction::least);
  const bool one_machine = least == session.reduce(word, reduction::most);
  std::string problem;
  address own;
  try {
    if (one_machine)
      own.ip = htonl(INADDR_LOOPBACK);
    else if (has_channel)
      own = transport::net::own_address(opts.net_interface);
    if (has_channel) {
      transport::net::channel_setup c;
      c.run = static_cast<std::uint32_t>(run);
      c.my_host = place.my_host;
      c.hosts = place.hosts.data();
      c.host_count = static_cast<std::uint32_t>(place.hosts.size());
      c.workers = place.workers;
      c.who = who_is_told(opts.directory);
      if (c.who == told::openflow) c.rules_at = switch_of(opts);
      c.faults = opts.switch_faults;
      c.life = life;
      channel_ = std::make_unique<transport::net::channel>(std::move(c));
      own.port = channel_->port();
    }
  } catch (const std::runtime_error& e) {
    problem = e.what();
  }
  session.agree(problem);

  std::vector<address> at(1);
  if (opts.directory == directory::datagrams || opts.directory == directory::ovs) {
    const std::vector<address> of_ranks = session.gather(own);
    at.resize(place.hosts.size());
    for (std::size_t h = 0; h < at.size(); ++h) {
      if (session.rank() == 0) at[h] = of_ranks[static_cast<std::size_t>(place.ranks_of[h].front())];
      at[h] = session.share(at[h]);
    }
  } else if (opts.directory == directory::relay) {
    try {
      if (session.rank() == 0) at[0] = start_relay(own, run);
    } catch (const std::runtime_error& e) {
      problem = e.what();
    }
    session.agree(problem);
    at[0] = session.share(at[0]);
  } else {
    at[0] = switch_of(opts);
  }
  if (opts.directory == directory::ovs && place.hosts.size() > transport::net::openflow_most_hosts)
    throw std::runtime_error("godwit: directory=ovs: " + std::to_string(place.hosts.size()) +
                             " hosts are more than the 63 that its packets can name: use xdp");
  const auto tell = [&](bool (transport::net::channel::*f)(std::uint64_t)) {
    if (channel_ != nullptr && !(channel_.get()->*f)(patience_ns))
      problem = "godwit: directory: no switch answers at " +
                transport::net::text_of(opts.directory == directory::ovs ? switch_of(opts) : at[0]) +
                " within 5 s" + (channel_->problem().empty() ? "" : " (" + channel_->problem() + ")") +
                ": is it there, and no firewall between? See docs/switch.md";
    session.agree(problem);
  };
  if (channel_ != nullptr) channel_->goes_to(at);
  if (opts.directory == directory::ovs) {
    if (place.my_host == 0)
      tell(&transport::net::channel::clear_rules);
    else
      session.agree(problem);
  }
  tell(&transport::net::channel::greet);
}

std::string network::problem() {
  if (channel_ != nullptr && !channel_->problem().empty())
    return "godwit: the switch of directory=ovs: " + channel_->problem() + "; the run is over";
  if (relay_ < 0 || waitpid(relay_, nullptr, WNOHANG) == 0) return {};
  relay_ = -1;
  return "godwit: the relay of directory=relay has been killed; the run is over";
}

network::~network() {
  if (relay_ < 0) return;
  kill(relay_, SIGKILL);
  while (waitpid(relay_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace godwit::runtime
