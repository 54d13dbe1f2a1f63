/* SPDX-License-Identifier: MIT */
/*
 * Included before each file of the library under test. The system's own headers
 * are first, so that only the library's calls change their name.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fake.h"

#define dlopen fake_dlopen
#define open fake_open
#define close fake_close
#define ioctl fake_ioctl
#define read fake_read
