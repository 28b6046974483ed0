#include "chplrt.h"
