// SPDX-License-Identifier: MIT
#include "programs/bulk.c"
#include "programs/check.c"
#include "programs/common.c"
