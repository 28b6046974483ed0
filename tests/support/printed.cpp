#include "support/printed.hpp"

SUPPORT_PRINTED()
