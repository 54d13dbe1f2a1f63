package nfcomms

import _ "github.com/nfcomms/nfcomms/internal/shm" // the addresses "shm:/run/nfsim/0.sock"
