package nfcomms

import _ "github.com/nfcomms/nfcomms/internal/vfio" // the addresses "vfio-user:/run/nfsim/card.sock"
