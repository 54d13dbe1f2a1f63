package nfcomms

import _ "github.com/nfcomms/nfcomms/internal/vfio" // the addresses "vfio:0000:01:00.0" and "vfio-user:/run/nfsim/card.sock"
