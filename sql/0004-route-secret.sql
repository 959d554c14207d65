-- SPDX-License-Identifier: ISC
--
-- What the route tokens in .rdp files are sealed with, by every dispatcher of this cluster: 244 random bits, two random
-- UUIDs. Whoever reads it can make tokens; dispatchers alone may.
ALTER TABLE cluster ADD COLUMN route_secret text;
UPDATE cluster SET route_secret = gen_random_uuid()::text || gen_random_uuid()::text;
ALTER TABLE cluster ALTER COLUMN route_secret SET NOT NULL,
	ADD CONSTRAINT cluster_route_secret_length CHECK (length(route_secret) = 72);
COMMENT ON COLUMN cluster.route_secret IS 'key material of route tokens; a new value makes every one worthless';
