#!/usr/bin/env python3
"""Echo a message and a megabyte on a device: echo.py [sim: | shm:PATH | dev:0]"""
import ctypes, os, sys

lib = ctypes.CDLL("libnfcomms.so.1")
lib.nfcomms_strerror.restype = ctypes.c_char_p
size, u64, u32 = ctypes.c_size_t, ctypes.c_uint64, ctypes.c_uint32
class Process(ctypes.Structure):
    _fields_ = [("id", u64), ("first", u32), ("targets", u32)]
def call(name, *arguments):
    result = getattr(lib, name)(*arguments)
    if result < 0:
        raise OSError(-result, lib.nfcomms_strerror(result).decode(), name)
    return result

dev, process, channel = ctypes.c_void_p(), Process(), u32()
call("nfcomms_open", (sys.argv[1:] or ["sim:"])[0].encode(), ctypes.byref(dev))
call("nfcomms_start", dev, b"loopback", u32(0), u32(1), u64(0), ctypes.byref(process))
call("nfcomms_subscribe", dev, u32(process.first), ctypes.byref(channel))
call("nfcomms_send", dev, channel, b"hello from Python", size(17))
answer = ctypes.create_string_buffer(56)
length = call("nfcomms_receive", dev, channel, answer, size(56))
out, back = os.urandom(1 << 20), ctypes.create_string_buffer(1 << 20)
call("nfcomms_send_ind", dev, channel, out, u64(1 << 20), None)
call("nfcomms_receive_ind", dev, channel, back, u64(1 << 20), None)
print(answer.raw[:length].decode(), "- a megabyte", "came back" if back.raw == out else "differs")
lib.nfcomms_close(dev)
