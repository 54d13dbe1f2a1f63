package nfcomms

import _ "github.com/nfcomms/nfcomms/bridge/kdev" // the addresses "dev:0", "dev:/dev/nfcomms0"
