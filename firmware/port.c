// SPDX-License-Identifier: MIT
#include "port/bus.c"
#include "port/fault.c"
#include "port/hosted.c"
#include "port/image.c"
#include "port/irq.c"
#include "port/stack.c"
#include "port/switch.c"
#include "port/threads.c"
