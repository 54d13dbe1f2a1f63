/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The errno of each status of a device, for the module and the library, which
 * include errno.h and nfc_abi.h before. The same table in Go is bridge/status.go.
 */
#ifndef NFCM_ERRNO_H
#define NFCM_ERRNO_H

/* The errno, positive; EPROTO for a status that there is not. */
static inline int nfcm_status_errno(unsigned int status)
{
	static const int errnos[NFC_STATUS_COUNT] = {
		[NFC_ECLOSED] = EPIPE,	       [NFC_ETIMEOUT] = ETIMEDOUT,
		[NFC_ESIZE] = EMSGSIZE,	       [NFC_EKIND] = EPROTOTYPE,
		[NFC_ETOOLARGE] = E2BIG,       [NFC_ERANGE] = ERANGE,
		[NFC_EPROTO] = EPROTO,	       [NFC_EDMA] = EIO,
		[NFC_EABORTED] = ECONNABORTED, [NFC_EWITHDRAWN] = ECANCELED,
		[NFC_ENOTARGET] = ENXIO,       [NFC_EBUSY] = EBUSY,
		[NFC_ENOPROGRAM] = ENOENT,     [NFC_EABI] = ENOEXEC,
		[NFC_ENOMEM] = ENOMEM,	       [NFC_EINVAL] = EINVAL,
		[NFC_ENOTSUP] = EOPNOTSUPP,    [NFC_ESTOPPED] = EINTR,
		[NFC_ERESET] = ENODEV,	       [NFC_EFAULT] = EHOSTDOWN,
		[NFC_ESTALLED] = ETIME,
	};

	return status < NFC_STATUS_COUNT ? errnos[status] : EPROTO;
}

#endif
