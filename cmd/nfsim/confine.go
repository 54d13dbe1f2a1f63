//go:build cgo

package main

import (
	"fmt"
	"os"
	"os/user"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
)

// identity is whom the process runs as once it has what it listens on.
type identity struct {
	uid, gid int
	groups   []int
}

// identityOf looks up the user that --user names; nil for none.
func identityOf(name string) (*identity, error) {
	if name == "" {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, usagef("--user %s: only root may become another user", name)
	}
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return nil, usagef("--user %s: no such user", name)
		}
	}
	ids := []string{u.Uid, u.Gid}
	more, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of user %s: %w", name, err)
	}
	var numbers []int
	for _, id := range append(ids, more...) {
		n, err := strconv.ParseInt(id, 10, 32)
		if err != nil {
			return nil, usagef("--user %s: %w: its number is %s", name, bridge.ErrInvalid, id)
		}
		numbers = append(numbers, int(n))
	}
	return &identity{uid: numbers[0], gid: numbers[1], groups: numbers[2:]}, nil
}

// assume makes this process, all of its threads, run as another user, which has none of
// root's capabilities.
func (i *identity) assume() error {
	if i == nil {
		return nil
	}
	if err := syscall.Setgroups(i.groups); err != nil {
		return os.NewSyscallError("setgroups", err)
	}
	if err := syscall.Setgid(i.gid); err != nil {
		return os.NewSyscallError("setgid", err)
	}
	return os.NewSyscallError("setuid", syscall.Setuid(i.uid))
}

// needed are the system calls of a device that processes share: of its threads, of memory
// and descriptors that it has, of sockets that it was given, of reading files that the
// dynamic linker and the user database are made of. Those that an architecture has not are
// left out.
var needed = []string{
	"mmap", "munmap", "mprotect", "mremap", "madvise", "mincore", "brk", "memfd_create", "ftruncate", "membarrier",
	"exit", "exit_group", "futex", "futex_waitv", "set_robust_list", "get_robust_list", "rseq", "sched_yield", "sched_getaffinity",
	"nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "restart_syscall", "getrandom",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "sigaltstack", "tgkill",
	"getpid", "gettid", "getuid", "geteuid", "getgid", "getegid", "uname", "sysinfo", "getrusage", "times",
	"read", "readv", "pread64", "write", "writev", "close", "fcntl", "fstat", "newfstatat", "statx", "lseek", "dup", "dup3",
	"access", "faccessat", "faccessat2", "readlink", "readlinkat", "getcwd", "unlink", "unlinkat",
	"pipe2", "eventfd2", "poll", "ppoll", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2",
	"socketpair", "accept4", "sendto", "sendmsg", "recvfrom", "recvmsg", "shutdown", "getsockopt", "setsockopt", "getsockname", "getpeername",
	"pidfd_open",
}

// conditional are those that are allowed with some arguments.
var conditional = []seccomp.NameWithConditions{
	// Threads, no processes.
	{Name: "clone", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD}}},
	// Files to read.
	{Name: "openat", Conditions: seccomp.ArgumentConditions{{Argument: 2, Operation: seccomp.BitsNotSet, Value: unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC}}},
	// Names of threads and of memory, which the runtime gives.
	{Name: "prctl", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.Equal, Value: unix.PR_SET_NAME}}},
	{Name: "prctl", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.Equal, Value: unix.PR_SET_VMA}}},
	// To ask for limits, not to set them.
	{Name: "prlimit64", Conditions: seccomp.ArgumentConditions{{Argument: 2, Operation: seccomp.Equal, Value: 0}}},
}

// policy is the filter of system calls; what is not in it fails with EPERM. Open, as
// images may need that, it forbids nothing.
func policy(open bool) (seccomp.Policy, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return seccomp.Policy{}, err
	}
	known := func(name string) bool {
		_, ok := info.SyscallNames[name]
		return ok
	}
	names := slices.DeleteFunc(slices.Clone(needed), func(name string) bool { return !known(name) })
	p := seccomp.Policy{DefaultAction: seccomp.ActionErrno, Syscalls: []seccomp.SyscallGroup{
		{Names: names, Action: seccomp.ActionAllow},
		// Its arguments are in memory, which a filter cannot read: the C library uses clone
		// then.
		{Names: []string{"clone3"}, Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)},
		{NamesWithCondtions: conditional, Action: seccomp.ActionAllow},
	}}
	if open {
		p.DefaultAction, p.Syscalls = seccomp.ActionAllow, p.Syscalls[:1]
	}
	return p, nil
}

// confine takes from this process, all of its threads and for good, what a device does not
// need: more rights by executing programs, and, unless it stays open, other system calls.
func confine(open bool) error {
	p, err := policy(open)
	if err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	runtime.LockOSThread() // no_new_privs is this thread's, until the filter gives it to all
	defer runtime.UnlockOSThread()
	if err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: p}); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}
