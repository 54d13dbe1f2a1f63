package nfcomms

import _ "github.com/nfcomms/nfcomms/internal/sim" // the address "sim:"
