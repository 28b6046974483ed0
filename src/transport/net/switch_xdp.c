// A switch in the kernel: an XDP program at the ports of who forwards between the hosts.
//
// Does what relay.cpp does, but for doubling and delaying. Hosts send all to UDP port 4700 of an address that
// leads to such a port (ARP is answered by whoever has the address). A packet that is passed on goes out at
// the port where its host has said hello, with that host's addresses. Compiled by clang -target bpf, not part
// of the library; attached by scripts/hosts --switch. Document: docs/switch.md, docs/protocols/switch.md.
// Test: tests/mpi/switch_test.sh.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "packet.h"

struct host_key {
  uint32_t run, host;
};
struct place {  // of a host
  uint32_t port;
  uint32_t ip;
  unsigned char mac[ETH_ALEN];
  uint16_t udp_port;
  uint32_t faults;
};
struct rule_key {
  uint64_t run, block;
};
struct rule {
  uint64_t host, version;
};

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, struct host_key);
  __type(value, struct place);
} hosts SEC(".maps");

// The oldest are forgotten: then the part's home is asked.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 1 << 20);
  __type(key, struct rule_key);
  __type(value, struct rule);
} rules SEC(".maps");

static __always_inline uint16_t checksum(const struct iphdr* ip) {
  uint32_t sum = 0;
  const uint16_t* word = (const uint16_t*)ip;
#pragma unroll
  for (int i = 0; i < 10; ++i) sum += word[i];
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return ~sum;
}

/// To @p to, out of its port.
static __always_inline int pass_on(struct ethhdr* e, struct iphdr* ip, struct udphdr* u,
                                   const struct place* to) {
  if (to->faults != 0 && bpf_get_prandom_u32() % 100 < to->faults) return XDP_DROP;
  __builtin_memcpy(e->h_dest, to->mac, ETH_ALEN);
  ip->saddr = ip->daddr;  // the switch: a host takes nothing from its own address
  ip->daddr = to->ip;
  ip->check = 0;
  ip->check = checksum(ip);
  u->dest = to->udp_port;
  u->check = 0;  // SO_NO_CHECK
  return bpf_redirect(to->port, 0);
}

SEC("xdp")
int godwit_switch(struct xdp_md* c) {
  void* const end = (void*)(long)c->data_end;
  struct ethhdr* e = (void*)(long)c->data;
  struct iphdr* ip = (void*)(e + 1);
  struct udphdr* u = (void*)(ip + 1);
  struct godwit_packet* p = (void*)(u + 1);
  if ((void*)(p + 1) > end) return XDP_PASS;
  if (e->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5 || ip->protocol != IPPROTO_UDP ||
      u->dest != bpf_htons(godwit_switch_port) || p->magic != godwit_packet_magic)
    return XDP_PASS;

  const struct host_key sender = {p->run, p->from};
  if (p->kind == godwit_hello) {
    struct place from = {
        .port = c->ingress_ifindex, .ip = ip->saddr, .udp_port = u->source, .faults = p->faults};
    __builtin_memcpy(from.mac, e->h_source, ETH_ALEN);
    bpf_map_update_elem(&hosts, &sender, &from, BPF_ANY);
    p->kind = godwit_ready;
    return pass_on(e, ip, u, &from);
  }
  const struct rule_key of = {p->run, p->block};
  if (p->kind == godwit_rebind) {
    const struct rule now = {p->from, p->version};
    struct rule* r = bpf_map_lookup_elem(&rules, &of);
    if (!r) {
      bpf_map_update_elem(&rules, &of, &now, BPF_NOEXIST);
    } else if (r->version < p->version) {  // SW4. Two at once: the older one was confirmed long ago
      r->host = now.host;
      r->version = now.version;
    }
    const struct place* from = bpf_map_lookup_elem(&hosts, &sender);
    if (!from) return XDP_DROP;
    p->kind = godwit_bound;
    return pass_on(e, ip, u, from);
  }
  struct host_key to = {p->run, p->to};
  if (p->kind == godwit_access) {
    const struct rule* r = bpf_map_lookup_elem(&rules, &of);
    if (r) to.host = r->host;
  }
  const struct place* there = bpf_map_lookup_elem(&hosts, &to);
  return there ? pass_on(e, ip, u, there) : XDP_DROP;
}

char godwit_license[] SEC("license") = "GPL";
