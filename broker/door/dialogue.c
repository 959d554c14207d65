/* SPDX-License-Identifier: ISC */
/*
 * A client sends erect domain and attach user, then joins channels in any order, then Client Info.
 * Joins are not required: a client that needs no channel may skip one. Each can be joined once, so
 * the number of packets is bounded.
 */
#include "door/dialogue.h"

#include <errno.h>

#include "door/mcs.h"

void dialogue_init(struct dialogue *d, uint32_t requested)
{
	*d = (struct dialogue){.requested = requested};
}

const char *dialogue_step_name(enum dialogue_step step)
{
	static const char *const names[] = {
		[DIALOGUE_CONNECT] = "connect",
		[DIALOGUE_ATTACH] = "attach",
		[DIALOGUE_JOIN] = "join",
		[DIALOGUE_KNOWN] = "known",
	};

	return names[step];
}

static int connect_initial(struct dialogue *d, struct pdu data, struct buf *out, struct err *e)
{
	struct mcs_client client;
	int r = mcs_parse_connect(data, &client, e);

	if (r < 0)
		return r;
	d->channels = client.channels;
	d->can_redirect = client.can_redirect;
	d->user = (uint16_t)(MCS_IO_CHANNEL + 1 + client.channels);
	d->step = DIALOGUE_ATTACH;
	mcs_add_connect_response(out, client.channels, d->requested);
	return 0;
}

static int unexpected(const struct dialogue *d, enum mcs_request kind, struct err *e)
{
	static const char *const names[] = {
		[MCS_ERECT] = "erect domain",
		[MCS_ATTACH] = "attach user",
		[MCS_JOIN] = "channel join",
		[MCS_DATA] = "data",
		[MCS_DISCONNECT] = "disconnect",
	};

	return err_set(e, -EINVAL, "%s in step %s", names[kind], dialogue_step_name(d->step));
}

static int join(struct dialogue *d, const struct mcs_domain_request *request, struct buf *out,
	struct err *e)
{
	unsigned number;

	if (request->user != d->user)
		return err_set(e, -EINVAL, "a channel join of user %u", request->user);
	if (request->channel == d->user)
		number = 0;
	else if (request->channel >= MCS_IO_CHANNEL && request->channel < d->user)
		number = request->channel - MCS_IO_CHANNEL + 1u;
	else
		return err_set(e, -EINVAL, "a join of channel %u", request->channel);
	if (d->joined >> number & 1)
		return err_set(e, -EINVAL, "a second join of channel %u", request->channel);
	d->joined |= UINT64_C(1) << number;
	mcs_add_join_confirm(out, d->user, request->channel);
	return 0;
}

static int info(struct dialogue *d, const struct mcs_domain_request *request,
	struct client_info *ret, struct err *e)
{
	int r;

	if (request->user != d->user || request->channel != MCS_IO_CHANNEL)
		return err_set(e, -EINVAL, "data of user %u on channel %u", request->user,
			request->channel);
	r = client_info_parse(request->data, ret, e);
	if (r < 0)
		return r;
	d->step = DIALOGUE_KNOWN;
	return 1;
}

static int domain_request(struct dialogue *d, struct pdu data, struct buf *out,
	struct client_info *ret, struct err *e)
{
	struct mcs_domain_request request;
	int r = mcs_parse_request(data, &request, e);

	if (r < 0)
		return r;
	if (d->step == DIALOGUE_ATTACH && request.kind == MCS_ERECT && !d->erected) {
		d->erected = true;
		return 0;
	}
	if (d->step == DIALOGUE_ATTACH && request.kind == MCS_ATTACH) {
		d->step = DIALOGUE_JOIN;
		mcs_add_attach_confirm(out, d->user);
		return 0;
	}
	if (d->step == DIALOGUE_JOIN && request.kind == MCS_JOIN)
		return join(d, &request, out, e);
	if (d->step == DIALOGUE_JOIN && request.kind == MCS_DATA)
		return info(d, &request, ret, e);
	return unexpected(d, request.kind, e);
}

int dialogue_feed(struct dialogue *d, const uint8_t *data, size_t len, size_t *ret_used,
	struct buf *out, struct client_info *ret, struct err *e)
{
	size_t used = 0, size = 0;
	struct pdu unit = {0};
	int r = 0;

	while (r == 0 && d->step != DIALOGUE_KNOWN) {
		r = tpkt_size(data + used, len - used, DIALOGUE_PACKET_MAX, &size, e);
		if (r == -EAGAIN || (r == 0 && size > len - used)) {
			r = 0;
			break;
		}
		if (r == 0)
			r = tpkt_data(data + used, size, &unit, e);
		if (r < 0)
			break;
		r = d->step == DIALOGUE_CONNECT ? connect_initial(d, unit, out, e)
						: domain_request(d, unit, out, ret, e);
		used += size;
	}
	*ret_used = used;
	return r;
}
