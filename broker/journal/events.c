/* SPDX-License-Identifier: ISC */
/*
 * Every event and every text of the journal. Names are stable: they are stored, and people search
 * for them. The texts are whole sentences without a full stop at the end.
 */
#include "journal/catalogue.h"

#include <string.h>

#define TEXTS(en, ru)                                      \
	{                                                  \
		[LANGUAGE_EN] = (en), [LANGUAGE_RU] = (ru) \
	}

/* clang-format off */
static const struct catalogue_entry entries[EVENT_ID_COUNT] = {
[EVENT_NODE_FULL] = {"node-full", EVENT_WARNING, {"node", "address"}, TEXTS(
	"The load index has reached its limit of 10000 slv. "
	"Node {address} will take no new users until its load falls",
	"Значение индекса нагрузки достигло предела в 10000 slv. "
	"Узел {address} не будет принимать новых пользователей до тех пор, пока нагрузка не снизится")},
[EVENT_NODE_NOT_FULL] = {"node-not-full", EVENT_INFO, {"node", "address", "load_index"}, TEXTS(
	"The load index of node {node} ({address}) has fallen to {load_index} slv: "
	"it takes new users again",
	"Индекс нагрузки узла {node} ({address}) снизился до {load_index} slv: "
	"узел снова принимает новых пользователей")},
[EVENT_NODE_CHOSEN] = {"node-chosen", EVENT_DEBUG, {"node", "address", "user", "load_index"}, TEXTS(
	"The user will be sent to this node: {address}, as it is the least loaded",
	"Пользователь будет перенаправлен на этот узел: {address}, т.к. он наименее загружен")},
[EVENT_NODE_ROUND_ROBIN] = {"node-round-robin", EVENT_DEBUG, {"node", "address", "user"}, TEXTS(
	"User {user} will be sent to node {node} ({address}): its turn has come",
	"Пользователь {user} будет перенаправлен на узел {node} ({address}): подошла его очередь")},
[EVENT_NODE_NAMED] = {"node-named", EVENT_INFO, {"node", "address", "user", "actor"}, TEXTS(
	"User {user} will be sent to node {node} ({address}), as {actor} demanded",
	"Пользователь {user} будет перенаправлен на узел {node} ({address}): "
	"этот узел указал {actor}")},
[EVENT_NODE_ROUTED] = {"node-routed", EVENT_DEBUG, {"node", "address", "user"}, TEXTS(
	"User {user} will be sent to node {node} ({address}), as the client's routing token says",
	"Пользователь {user} будет перенаправлен на узел {node} ({address}): "
	"этот узел указан в токене клиента")},
[EVENT_SESSION_RECONNECT] = {"session-reconnect", EVENT_DEBUG,
	{"node", "address", "user", "session"}, TEXTS(
	"User {user} returns to session {session} on node {node} ({address})",
	"Пользователь {user} возвращается в свою сессию {session} на узле {node} ({address})")},
[EVENT_SESSION_SUSPENDED] = {"session-suspended", EVENT_WARNING,
	{"node", "address", "user", "session"}, TEXTS(
	"Node {node} ({address}) does not answer: session {session} of user {user} is out of reach, "
	"another node is chosen",
	"Узел {node} ({address}) не отвечает: сессия {session} пользователя {user} недоступна, "
	"будет выбран другой узел")},
[EVENT_CONNECT_REFUSED] = {"connect-refused", EVENT_WARNING, {"user", "reason", "counts"}, TEXTS(
	"User {user} was given no node: {reason:w}[ ({counts})]",
	"Пользователю {user} не предоставлен узел: {reason:w}[ ({counts})]")},
[EVENT_USER_LOGIN] = {"user-login", EVENT_INFO, {"user", "node"}, TEXTS(
	"User {user} has logged in successfully",
	"Пользователь {user} успешно вошел в систему")},
[EVENT_USER_LOGOUT] = {"user-logout", EVENT_INFO, {"user", "node", "session"}, TEXTS(
	"Session {session} of user {user} on node {node} has ended",
	"Сессия {session} пользователя {user} на узле {node} завершена")},
[EVENT_NODE_SILENT] = {"node-silent", EVENT_WARNING, {"node", "address", "seconds"}, TEXTS(
	"Node {node} ({address}) has sent nothing for {seconds} s: "
	"it takes no new users until it is heard again",
	"Узел {node} ({address}) не присылает данных {seconds} с: новые пользователи "
	"на него не направляются, пока он снова не выйдет на связь")},
[EVENT_NODE_HEARD] = {"node-heard", EVENT_INFO, {"node", "address"}, TEXTS(
	"Node {node} ({address}) is heard again: it may take new users",
	"Узел {node} ({address}) снова на связи и может принимать новых пользователей")},
[EVENT_NODE_REBOOTED] = {"node-rebooted", EVENT_INFO, {"node", "address"}, TEXTS(
	"Node {node} ({address}) has been rebooted",
	"Узел {node} ({address}) был перезагружен")},
[EVENT_NODE_SUSPECT] = {"node-suspect", EVENT_WARNING, {"node", "address", "reason"}, TEXTS(
	"Node {node} ({address}) does not let users in: {reason}. It comes last for five minutes",
	"Узел {node} ({address}) не впускает пользователей: {reason}. Пять минут он будет последним")},
[EVENT_NODE_TRUSTED] = {"node-trusted", EVENT_INFO, {"node", "address"}, TEXTS(
	"Node {node} ({address}) is trusted again",
	"Узлу {node} ({address}) снова доверяют")},
[EVENT_MASS_SILENCE] = {"mass-silence", EVENT_ERROR, {"silent", "nodes"}, TEXTS(
	"{silent} of {nodes} nodes fell silent at once: check the network of the dispatcher",
	"Почти одновременно перестали отвечать узлы: {silent} из {nodes}. Проверьте сеть диспетчера")},
[EVENT_DUPLICATE_AGENT] = {"duplicate-agent", EVENT_WARNING,
	{"node", "address", "other_address"}, TEXTS(
	"Two machines report as node {node}: {address} and {other_address}",
	"Данные от имени узла {node} присылают две машины: {address} и {other_address}")},
[EVENT_HEARTBEAT_REFUSED] = {"heartbeat-refused", EVENT_WARNING,
	{"node", "address", "reason"}, TEXTS(
	"What node {node} sent from {address} was refused: {reason}",
	"Данные узла {node}, присланные с адреса {address}, отклонены: {reason}")},
[EVENT_ADMIN_CREATED] = {"admin-created", EVENT_INFO, {"kind", "name", "actor"}, TEXTS(
	"{actor} created {kind:w} {name}",
	"{actor}: создан {kind:w} {name}")},
[EVENT_ADMIN_CHANGED] = {"admin-changed", EVENT_INFO, {"kind", "name", "actor", "changes"}, TEXTS(
	"{actor} changed {kind:w} {name}[: {changes}]",
	"{actor}: изменен {kind:w} {name}[: {changes}]")},
[EVENT_ADMIN_REMOVED] = {"admin-removed", EVENT_INFO, {"kind", "name", "actor"}, TEXTS(
	"{actor} removed {kind:w} {name}",
	"{actor}: удален {kind:w} {name}")},
[EVENT_MAINTENANCE] = {"maintenance", EVENT_INFO, {"kind", "name", "mode", "reason", "actor"}, TEXTS(
	"{actor} set {kind:w} {name} to {mode:w}[. Reason: {reason}]",
	"{actor}: {kind:w} {name} переведен в режим «{mode:w}»[. Причина: {reason}]")},
[EVENT_SESSION_FORGOTTEN] = {"session-forgotten", EVENT_INFO,
	{"user", "node", "session", "actor"}, TEXTS(
	"{actor} struck session {session} of user {user} on node {node} off the records",
	"{actor}: сессия {session} пользователя {user} на узле {node} снята с учета")},
[EVENT_ACCESS_DENIED] = {"access-denied", EVENT_WARNING,
	{"actor", "address", "call", "reason"}, TEXTS(
	"{call} was denied to {actor} from {address}: {reason}",
	"Отказано в доступе к {call}: {actor} с адреса {address}. Причина: {reason}")},
[EVENT_DOOR_REDIRECTED] = {"door-redirected", EVENT_INFO,
	{"node", "address", "user", "client"}, TEXTS(
	"RDP client {client} of user {user} was redirected to node {node} ({address})",
	"Клиент RDP {client} пользователя {user} перенаправлен на узел {node} ({address})")},
[EVENT_DOOR_RELAYED] = {"door-relayed", EVENT_INFO,
	{"node", "address", "user", "client"}, TEXTS(
	"RDP client {client}[ of user {user}] was connected through to node {node} ({address})",
	"Клиент RDP {client}[ пользователя {user}] соединен с узлом {node} ({address})")},
[EVENT_DOOR_ENDED] = {"door-ended", EVENT_INFO,
	{"node", "address", "user", "client", "seconds", "from_client", "from_node", "reason"}, TEXTS(
	"The connection of RDP client {client}[ of user {user}] to node {node} ({address}) has ended after "
	"{seconds} s: {from_client} bytes from the client, {from_node} from the node, {reason}",
	"Соединение клиента RDP {client}[ пользователя {user}] с узлом {node} ({address}) завершено через "
	"{seconds} с: от клиента {from_client} байт, от узла {from_node}, {reason}")},
[EVENT_DOOR_FAILED] = {"door-failed", EVENT_WARNING, {"client", "step", "reason"}, TEXTS(
	"The handshake with RDP client {client} failed in step {step}: {reason}",
	"Не удалось установить соединение с клиентом RDP {client}, шаг {step}: {reason}")},
[EVENT_DATABASE_LOST] = {"database-lost", EVENT_ERROR, {"reason"}, TEXTS(
	"The connection to the database was lost: {reason}",
	"Потеряна связь с базой данных: {reason}")},
[EVENT_DATABASE_BACK] = {"database-back", EVENT_INFO, {"seconds"}, TEXTS(
	"The database is back after {seconds} s",
	"Связь с базой данных восстановлена через {seconds} с")},
[EVENT_DISPATCHER_STARTED] = {"dispatcher-started", EVENT_INFO, {"dispatcher", "version"}, TEXTS(
	"Dispatcher {dispatcher} has started, version {version}",
	"Диспетчер {dispatcher} запущен, версия {version}")},
[EVENT_DISPATCHER_STOPPED] = {"dispatcher-stopped", EVENT_INFO, {"dispatcher"}, TEXTS(
	"Dispatcher {dispatcher} has stopped",
	"Диспетчер {dispatcher} остановлен")},
[EVENT_RELOADED] = {"reloaded", EVENT_INFO, {"result"}, TEXTS(
	"The configuration was read again: {result}",
	"Настройки перечитаны: {result}")},
[EVENT_JOURNAL_GAP] = {"journal-gap", EVENT_WARNING, {"lines", "reason"}, TEXTS(
	"Lines missing here: {lines}. They could not be written: {reason}",
	"Здесь пропущено строк: {lines}. Их не удалось записать: {reason}")},
};

/* Codes that a human should not have to read. */
static const struct {
	const char *code;
	const char *text[2];
} words[] = {
	{"provider", TEXTS("provider", "поставщик")},
	{"pool", TEXTS("pool", "фонд")},
	{"node", TEXTS("node", "узел")},
	{"token", TEXTS("token", "токен")},
	{"enabled", TEXTS("enabled", "в работе")},
	{"drain", TEXTS("drain (no new users)", "без новых пользователей")},
	{"disabled", TEXTS("disabled", "отключен")},
	{"pool_unknown", TEXTS("there is no such pool", "такого фонда нет")},
	{"pool_maintenance", TEXTS("the pool is in maintenance", "фонд на техобслуживании")},
	{"no_nodes", TEXTS("the provider has no nodes", "у поставщика нет узлов")},
	{"no_tag_match", TEXTS("no node has the tags asked for", "нет узлов с такими метками")},
	{"all_maintenance", TEXTS("all nodes are in maintenance", "все узлы на техобслуживании")},
	{"no_metrics", TEXTS("no node sends metrics", "ни один узел не присылает метрик")},
	{"all_full", TEXTS("all nodes are full", "все узлы заполнены")},
	{"tag_denied", TEXTS("a tag is not allowed", "метка не разрешена")},
	{"node_unknown", TEXTS("there is no such node", "такого узла нет")},
};
/* clang-format on */

const struct catalogue_entry *catalogue_entry(enum event_id id)
{
	return (unsigned)id < EVENT_ID_COUNT ? &entries[id] : NULL;
}

const char *catalogue_word(const char *code, enum event_language language)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].code, code) == 0)
			return words[i].text[language];
	return code;
}
