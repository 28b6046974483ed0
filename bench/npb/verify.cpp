#include "verify.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

namespace npb {

namespace {

/// One of three values for the classes S, W and A.
template <class T>
const T& of_class(char c, const T& s, const T& w, const T& a) {
  if (c == 'S') return s;
  if (c == 'W') return w;
  if (c == 'A') return a;
  throw std::invalid_argument(std::string("NPB has no class ") + c + " here: S, W or A");
}

/// Not-a-number is not near.
bool near(double got, double right, double tolerance) noexcept {
  return std::abs((got - right) / right) <= tolerance;
}

}  // namespace

ep_problem::ep_problem(char c)
    : log_pairs(of_class(c, 24, 25, 28)),
      sx(of_class(c, -3.247834652034740e+3, -2.863319731645753e+3, -4.295875165629892e+3)),
      sy(of_class(c, -6.958407078382297e+3, -6.320053679109499e+3, -1.580732573678431e+4)) {}
bool ep_problem::verified(double got_sx, double got_sy) const noexcept {
  return near(got_sx, sx, 1e-8) && near(got_sy, sy, 1e-8);
}

is_problem::is_problem(char c)
    : log_keys(of_class(c, 16, 20, 23)),
      log_max_key(of_class(c, 11, 16, 19)),
      index(of_class<std::array<std::uint32_t, tests>>(c, {48427, 17148, 23627, 62548, 4431},
                                                       {357773, 934767, 875723, 898999, 404505},
                                                       {2112377, 662041, 5336171, 3642833, 4250760})),
      rank_(of_class<std::array<std::int64_t, tests>>(c, {0, 18, 346, 64917, 65463},
                                                      {1249, 11698, 1039987, 1043896, 1048018},
                                                      {104, 17523, 123928, 8288932, 8388264})),
      rising_(of_class(c, 3, 2, 3)),
      first_up_(of_class(c, 1, -1, 0)),
      first_down_(of_class(c, 1, 1, 0)) {}
bool is_problem::verified(int test, int iteration, std::int64_t rank) const noexcept {
  // Each iteration puts one key more at the low end, and one at the high end.
  const auto t = static_cast<std::size_t>(test);
  return rank ==
         (test < rising_ ? rank_[t] + first_up_ + iteration - 1 : rank_[t] - first_down_ - iteration + 1);
}

cg_problem::cg_problem(char c)
    : rows(of_class(c, 1400, 7000, 14000)),
      nonzeros(of_class(c, 7, 8, 11)),
      shift(of_class(c, 10.0, 12.0, 20.0)),
      zeta(of_class(c, 8.5971775078648, 10.362595087124, 17.130235054029)) {}
bool cg_problem::verified(double got) const noexcept { return near(got, zeta, 1e-10); }

mg_problem::mg_problem(char c)
    : log_side(of_class(c, 5, 7, 8)),
      norm(of_class(c, 0.5307707005734e-04, 0.6467329375339e-05, 0.2433365309069e-05)) {}
bool mg_problem::verified(double got) const noexcept { return near(got, norm, 1e-8); }

ft_problem::ft_problem(char c)
    : nx(of_class(c, 64, 128, 256)),
      ny(of_class(c, 64, 128, 256)),
      nz(of_class(c, 64, 32, 128)),
      checksums(of_class<sums>(c,
                               {{{5.546087004964e+02, 4.845363331978e+02},
                                 {5.546385409189e+02, 4.865304269511e+02},
                                 {5.546148406171e+02, 4.883910722336e+02},
                                 {5.545423607415e+02, 4.901273169046e+02},
                                 {5.544255039624e+02, 4.917475857993e+02},
                                 {5.542683411902e+02, 4.932597244941e+02}}},
                               {{{5.673612178944e+02, 5.293246849175e+02},
                                 {5.631436885271e+02, 5.282149986629e+02},
                                 {5.594024089970e+02, 5.270996558037e+02},
                                 {5.560698047020e+02, 5.260027904925e+02},
                                 {5.530898991250e+02, 5.249400845633e+02},
                                 {5.504159734538e+02, 5.239212247086e+02}}},
                               {{{5.046735008193e+02, 5.114047905510e+02},
                                 {5.059412319734e+02, 5.098809666433e+02},
                                 {5.069376896287e+02, 5.098144042213e+02},
                                 {5.077892868474e+02, 5.101336130759e+02},
                                 {5.085233095391e+02, 5.104914655194e+02},
                                 {5.091487099959e+02, 5.107917842803e+02}}})) {}
bool ft_problem::verified(const sums& got) const noexcept {
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs((got[i] - checksums[i]) / checksums[i]) <= 1e-12)) return false;
  return true;
}

}  // namespace npb
