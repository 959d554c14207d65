/* SPDX-License-Identifier: ISC */
/* Inside api/: which handler a request goes to, and who may. */
#pragma once

#include "api/request.h"

void routes_dispatch(struct request *r);
