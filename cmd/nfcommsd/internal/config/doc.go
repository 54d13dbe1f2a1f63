// Package config holds the settings of nfcommsd.
//
// There is one table of settings. Each has a key, "limits.streams", and may be
// given as a flag, --limits-streams, as an environment variable,
// NFCOMMSD_LIMITS_STREAMS, and in a YAML file, below limits: as streams:. Where
// several say something, the flag wins over the environment and that over the
// file; a list is taken from one of them as a whole. A setting that the table
// does not have is an error that names it, and so is a value that makes no sense.
package config
