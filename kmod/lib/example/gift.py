#!/usr/bin/env python3
"""Give a megabyte to another process, which fills it and gives it back: gift.py shm:PATH"""
import ctypes, os, sys

lib = ctypes.CDLL("libnfcomms.so.1")
lib.nfcomms_strerror.restype = ctypes.c_char_p
u64, u32 = ctypes.c_uint64, ctypes.c_uint32
class Memory(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", u64), ("region", u32)]
def call(name, *arguments):
    result = getattr(lib, name)(*arguments)
    if result < 0:
        raise OSError(-result, lib.nfcomms_strerror(result).decode(), name)
    return result

name, size = b"gift.%d" % os.getpid(), 1 << 20
dev, listener, channel, memory = ctypes.c_void_p(), u32(), u32(), Memory()
listens, tell = os.pipe()
child = os.fork() == 0 # devices do not outlive a fork: each process opens its own
if child:
    os.close(tell)
    os.read(listens, 1)
call("nfcomms_open", sys.argv[1].encode(), ctypes.byref(dev))
if child:
    call("nfcomms_dial", dev, name, ctypes.byref(channel))
    call("nfcomms_take", dev, channel, ctypes.byref(memory))
    ctypes.memset(memory.data, ord("g"), memory.size)
    call("nfcomms_give", dev, channel, u32(memory.region))
    os._exit(0)
call("nfcomms_listen", dev, name, ctypes.byref(listener))
os.write(tell, b"x")
call("nfcomms_accept", dev, listener, ctypes.byref(channel))
call("nfcomms_alloc", dev, u64(size), ctypes.byref(memory))
call("nfcomms_give", dev, channel, u32(memory.region))
call("nfcomms_take", dev, channel, ctypes.byref(memory))
filled = ctypes.string_at(memory.data, memory.size) == b"g" * size
print("a megabyte came back", "full" if filled else "empty")
lib.nfcomms_close(dev)
os.wait()
