package nfcomms

import _ "github.com/nfcomms/nfcomms/internal/kdev" // the addresses "dev:0", "dev:/dev/nfcomms0"
