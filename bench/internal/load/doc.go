// Package load keeps a machine busy: processes that compute until they are told to end.
package load
