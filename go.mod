module github.com/nfcomms/nfcomms

go 1.26
