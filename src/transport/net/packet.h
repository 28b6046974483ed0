// A datagram between hosts, as a switch sees it. C, because the switch in the kernel reads it too
// (switch_xdp.c); multi-byte fields are in the byte order of the hosts, which are alike.
//
// A switch knows two things: where the hosts of a run are, which they tell it (hello), and which host has a
// block, which its new owner tells it (rebind). Everything else it only passes on. What follows the head is
// for the hosts: a transport::far::header and its bytes (channel.cpp).
// Document: docs/protocols/switch.md. Test: tests/transport/channel_test.cpp.
#pragma once

#ifdef __cplusplus
#include <cstdint>
#else
#include <linux/types.h>
typedef __u16 uint16_t;
typedef __u32 uint32_t;
typedef __u64 uint64_t;
#endif

enum {
  godwit_packet_magic = 0x31775347,  ///< "GSw1"
  godwit_switch_port = 4700,         ///< UDP, of a switch that is no process of the run
};

enum godwit_packet_kind {
  godwit_hello = 1,  ///< to the switch: this is where host `from` is
  godwit_ready,      ///< its answer
  godwit_rebind,     ///< to the switch: `from` has `block` as of `version`
  godwit_bound,      ///< its answer
  godwit_access,     ///< to who has `block`; if the switch has no rule for it, to host `to`
  godwit_direct,     ///< to host `to`
  godwit_answer,     ///< the same
};

struct godwit_packet {
  uint32_t magic;
  uint32_t run;  ///< packets and rules of other runs are not ours
  uint16_t kind;
  uint16_t to;
  uint16_t from;
  uint16_t hops;     ///< how often a host has sent it on
  uint64_t block;    ///< the number of a part of movable memory, the same on all hosts
  uint64_t version;  ///< of who has it: a rule is replaced by a newer one only
  uint64_t number;   ///< of the asker's requests; of a rebind
  uint32_t asker;    ///< worker
  uint32_t slot;     ///< in its ring
  uint32_t bytes;    ///< behind the far::header
  uint32_t faults;   ///< hello: lose, double and delay so many of 100 packets each
  uint64_t life;     ///< of the memory: of no older life may anything be carried out
};
