package nfcomms

import _ "github.com/nfcomms/nfcomms/bridge/shm" // the addresses "shm:/run/nfsim/0.sock"
