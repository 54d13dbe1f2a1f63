package nfcomms

import _ "github.com/nfcomms/nfcomms/bridge/shm" // the addresses "shm:/run/nfcomms/0.sock"
