package nfcomms

import _ "github.com/nfcomms/nfcomms/bridge/sim" // the address "sim:"
